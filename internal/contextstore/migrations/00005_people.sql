CREATE TABLE links (
    who TEXT PRIMARY KEY,               -- somebody in a chat: slack:U123
    account TEXT NOT NULL,              -- whom they are one person with: github:hanako, terminal:hanako
    code TEXT NOT NULL,                 -- SHA-256 of the code that made it, in hexadecimal
    linked_at TEXT NOT NULL             -- ISO 8601
) WITHOUT ROWID;

CREATE TABLE link_codes (
    code TEXT PRIMARY KEY,              -- its SHA-256, in hexadecimal
    account TEXT NOT NULL,
    until TEXT NOT NULL                 -- when it is no good any more (ISO 8601)
) WITHOUT ROWID;

CREATE TABLE link_tries (
    seq INTEGER PRIMARY KEY,
    who TEXT NOT NULL,                  -- who said a code that there is not
    tried_at TEXT NOT NULL              -- ISO 8601
);

CREATE TABLE followers (
    uuid TEXT NOT NULL,                 -- a run of a forge
    session TEXT NOT NULL,              -- the conversation that is told of it, until it ended
    reply_to TEXT NOT NULL,             -- the message that asked for it there
    language TEXT NOT NULL,             -- that the conversation is spoken with in
    PRIMARY KEY (uuid, session)
) WITHOUT ROWID;
