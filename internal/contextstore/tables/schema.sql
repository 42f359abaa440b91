-- Where contexts lie in a database.

-- A directory of a status or of the conversations, and what lies in it. What lies in the base
-- directory itself has neither.
CREATE TABLE contexts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    area TEXT NOT NULL,               -- queued, running, paused, completed, sessions
    name TEXT NOT NULL,               -- the run's uuid, the conversation's directory
    made_at INTEGER NOT NULL,             -- ms since 1970
    UNIQUE (area, name)
);

CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    context INTEGER NOT NULL,
    name TEXT NOT NULL,               -- messages.jsonl, planning/UUID.jsonl
    size INTEGER NOT NULL,                -- bytes; -1 of a directory
    version INTEGER NOT NULL,             -- another one each time that it is replaced
    changed_at INTEGER NOT NULL,          -- ms since 1970
    UNIQUE (context, name)
);

-- What files hold: a line is a row. What is no line, and what is longer than a MiB, is cut as
-- it was written.
CREATE TABLE lines (
    file INTEGER NOT NULL,
    at INTEGER NOT NULL,                  -- where it begins in the file, bytes
    raw BLOB NOT NULL,               -- with its newline
    PRIMARY KEY (file, at)
) WITHOUT ROWID;

CREATE TABLE locks (
    context INTEGER NOT NULL,
    name TEXT NOT NULL,               -- of the file that is locked
    token TEXT NOT NULL,              -- of the holder: boot id, process, when that began, a random number
    until_ms INTEGER NOT NULL,            -- by the clock of the database, ms since 1970
    PRIMARY KEY (context, name)
) WITHOUT ROWID;

-- What the lines say, by the fields of store-v3 §3 and the names of store-v2 §10.1. {json} is a
-- line as JSON, NULL where it is none.
CREATE VIEW messages AS
    SELECT c.name AS uuid, CAST({json} ->> 'seq' AS INTEGER) AS seq, {json} ->> 'role' AS role, {json} ->> 'tool_name' AS tool_name,
        {json} ->> 'content' AS content, {json} ->> 'timestamp' AS timestamp,
        CAST(coalesce({json} ->> 'tokens', {json} ->> 'token_count') AS INTEGER) AS tokens, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name = 'messages.jsonl';

CREATE VIEW summaries AS
    SELECT c.name AS uuid, CAST(coalesce({json} ->> 'id', {json} ->> 'summary_id') AS INTEGER) AS id, CAST({json} ->> 'start_seq' AS INTEGER) AS start_seq,
        CAST({json} ->> 'end_seq' AS INTEGER) AS end_seq, {json} ->> 'summary' AS summary, CAST({json} ->> 'original_tokens' AS INTEGER) AS original_tokens,
        CAST({json} ->> 'summary_tokens' AS INTEGER) AS summary_tokens, coalesce({json} ->> 'ratio', {json} ->> 'compression_ratio') AS ratio,
        coalesce({json} ->> 'timestamp', {json} ->> 'created_at') AS timestamp, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name = 'summaries.jsonl';

CREATE VIEW tool_calls AS
    SELECT c.name AS uuid, CAST({json} ->> 'seq' AS INTEGER) AS seq, coalesce({json} ->> 'tool', {json} ->> 'tool_name') AS tool,
        coalesce({json} ->> 'args', {json} ->> 'arguments') AS args, {json} ->> 'result' AS result, {json} ->> 'status' AS status,
        {json} ->> 'error' AS error, CAST({json} ->> 'duration_ms' AS INTEGER) AS duration_ms, {json} ->> 'timestamp' AS timestamp, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name = 'tools.jsonl';

CREATE VIEW plan_events AS
    SELECT c.name AS uuid, l.at AS at, {json} ->> 'type' AS type, {json} ->> 'timestamp' AS timestamp, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name LIKE 'planning/%.jsonl';
