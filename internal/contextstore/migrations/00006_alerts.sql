CREATE TABLE alerts (
    name TEXT NOT NULL,                 -- what is wrong: unreachable, disk_full ...
    about TEXT NOT NULL,                -- with what: github, slack; '' for the house
    text TEXT NOT NULL,                 -- as people are told it
    begun_at TEXT NOT NULL,             -- ISO 8601
    told INTEGER NOT NULL,              -- 1 once its begin was told
    ended_at TEXT,                      -- NULL while it is open, else its end is yet to be told
    PRIMARY KEY (name, about)
) WITHOUT ROWID;

CREATE INDEX idx_inbox_failed ON inbox(done_at) WHERE failed <> '';
