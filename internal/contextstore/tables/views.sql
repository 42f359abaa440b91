
-- What the lines say, by the fields of store-v3 §3 and the names of store-v2 §10.1. {json} is a
-- line as JSON, NULL where it is none.
CREATE VIEW messages AS
    SELECT c.name AS uuid, CAST({json} ->> 'seq' AS {int}) AS seq, {json} ->> 'role' AS role, {json} ->> 'tool_name' AS tool_name,
        {json} ->> 'content' AS content, {json} ->> 'timestamp' AS timestamp,
        CAST(coalesce({json} ->> 'tokens', {json} ->> 'token_count') AS {int}) AS tokens, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name = 'messages.jsonl';

CREATE VIEW summaries AS
    SELECT c.name AS uuid, CAST(coalesce({json} ->> 'id', {json} ->> 'summary_id') AS {int}) AS id, CAST({json} ->> 'start_seq' AS {int}) AS start_seq,
        CAST({json} ->> 'end_seq' AS {int}) AS end_seq, {json} ->> 'summary' AS summary, CAST({json} ->> 'original_tokens' AS {int}) AS original_tokens,
        CAST({json} ->> 'summary_tokens' AS {int}) AS summary_tokens, coalesce({json} ->> 'ratio', {json} ->> 'compression_ratio') AS ratio,
        coalesce({json} ->> 'timestamp', {json} ->> 'created_at') AS timestamp, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name = 'summaries.jsonl';

CREATE VIEW tool_calls AS
    SELECT c.name AS uuid, CAST({json} ->> 'seq' AS {int}) AS seq, coalesce({json} ->> 'tool', {json} ->> 'tool_name') AS tool,
        coalesce({json} ->> 'args', {json} ->> 'arguments') AS args, {json} ->> 'result' AS result, {json} ->> 'status' AS status,
        {json} ->> 'error' AS error, CAST({json} ->> 'duration_ms' AS {int}) AS duration_ms, {json} ->> 'timestamp' AS timestamp, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name = 'tools.jsonl';

CREATE VIEW plan_events AS
    SELECT c.name AS uuid, l.at AS at, {json} ->> 'type' AS type, {json} ->> 'timestamp' AS timestamp, l.raw
    FROM contexts c JOIN files f ON f.context = c.id JOIN lines l ON l.file = f.id WHERE f.name LIKE 'planning/%.jsonl';
