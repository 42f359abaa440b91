CREATE TABLE marks (
    scope TEXT NOT NULL,                -- a door and what lies behind it: github/owner/name
    name TEXT NOT NULL,                 -- what is kept of it: how far its comments were read ...
    value TEXT NOT NULL,
    marked_at TEXT NOT NULL,            -- when it was last set (ISO 8601)
    PRIMARY KEY (scope, name)
) WITHOUT ROWID;
