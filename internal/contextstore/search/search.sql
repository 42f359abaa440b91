-- The whole of search.db. A change of it, or of what is put into it, gets the next number, here and
-- in Schema.Version: an older database is then made anew from the directories.

CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

-- id is when the run ended, in ms since 1970, or a number soon after it that was free: runs are found in
-- the order of time, and a time is a range of numbers.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE
);

-- What a model for embeddings made of the titles and requests of runs, by their ids: a byte for each
-- number, in proportion to the largest. Empty is one that has none. search_meta names the model.
CREATE TABLE vectors (
    place TEXT NOT NULL,
    id INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (place, id)
) WITHOUT ROWID;

CREATE INDEX vectors_id ON vectors (id);

CREATE TABLE search_meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- A row for each run, by its id. The texts lie in the files: here are their terms alone.
CREATE VIRTUAL TABLE texts USING fts5(facet, title, request, summary, plan, messages, tools, content='', contentless_delete=1, tokenize='ascii');

-- What is put in at once is sorted in memory, up to 8 MiB: many runs take a fraction of the time then.
INSERT INTO texts (texts, rank) VALUES ('hashsize', 8388608);

CREATE VIRTUAL TABLE terms USING fts5vocab(texts, 'row');

INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1), (2, 1);
