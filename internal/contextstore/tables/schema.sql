-- Where contexts lie in a database. {id}, {int}, {bytes} and {text} are the types of the engine.

-- A directory of a status or of the conversations, and what lies in it. What lies in the base
-- directory itself has neither.
CREATE TABLE contexts (
    id {id},
    area {text} NOT NULL,               -- queued, running, paused, completed, sessions
    name {text} NOT NULL,               -- the run's uuid, the conversation's directory
    made_at {int} NOT NULL,             -- ms since 1970
    UNIQUE (area, name)
);

CREATE TABLE files (
    id {id},
    context {int} NOT NULL,
    name {text} NOT NULL,               -- messages.jsonl, planning/UUID.jsonl
    size {int} NOT NULL,                -- bytes; -1 of a directory
    version {int} NOT NULL,             -- another one each time that it is replaced
    changed_at {int} NOT NULL,          -- ms since 1970
    UNIQUE (context, name)
);

-- What files hold: a line is a row. What is no line, and what is longer than a MiB, is cut as
-- it was written.
CREATE TABLE lines (
    file {int} NOT NULL,
    at {int} NOT NULL,                  -- where it begins in the file, bytes
    raw {bytes} NOT NULL,               -- with its newline
    PRIMARY KEY (file, at)
){rowless};

CREATE TABLE locks (
    context {int} NOT NULL,
    name {text} NOT NULL,               -- of the file that is locked
    token {text} NOT NULL,              -- of the holder: boot id, process, when that began, a random number
    until_ms {int} NOT NULL,            -- by the clock of the database, ms since 1970
    PRIMARY KEY (context, name)
){rowless};
