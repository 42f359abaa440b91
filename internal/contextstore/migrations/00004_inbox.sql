CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY,            -- the order in which they came
    channel TEXT NOT NULL,              -- line, slack ...
    id TEXT NOT NULL,                   -- the vendor's
    queue TEXT NOT NULL,                -- within which the order is kept; '' for those that keep none
    body BLOB NOT NULL,                 -- as it was sent; '' once it is done
    received_at TEXT NOT NULL,          -- ISO 8601
    done_at TEXT,                       -- when it was worked on or given up; NULL while it waits
    failed TEXT NOT NULL DEFAULT '',    -- why it was given up, '' where it was not
    UNIQUE (channel, id)
);

CREATE INDEX idx_inbox_waiting ON inbox(seq) WHERE done_at IS NULL;
CREATE INDEX idx_inbox_done ON inbox(done_at) WHERE done_at IS NOT NULL;
