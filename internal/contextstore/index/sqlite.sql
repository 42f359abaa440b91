-- What tasks.db has of its own in SQLite: the version, columns that follow from others, and the counters' triggers.

CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

-- Between the times of a run are so many ms; why it failed is told apart by so many characters.
ALTER TABLE tasks ADD COLUMN took_ms INTEGER GENERATED ALWAYS AS
    ((strftime('%s', substr(completed_at, 1, 19)) - strftime('%s', substr(started_at, 1, 19))) * 1000 + substr(completed_at, 21, 3) - substr(started_at, 21, 3));
ALTER TABLE tasks ADD COLUMN reason TEXT GENERATED ALWAYS AS (substr(coalesce(error_message, ''), 1, 300));

CREATE INDEX idx_tasks_completed ON tasks(status, completed_at, started_at, total_tokens)
    WHERE status = 'completed';

CREATE INDEX idx_tasks_failed ON tasks(completed_at, uuid, user, owner, repo, model, reason) WHERE status = 'failed';

CREATE TRIGGER task_days_insert AFTER INSERT ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status,
        {sums NEW})
    {add};
END;

CREATE TRIGGER task_days_update AFTER UPDATE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status,
        {sums -OLD})
    {add};
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status,
        {sums NEW})
    {add};
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;

CREATE TRIGGER task_days_delete AFTER DELETE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status,
        {sums -OLD})
    {add};
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;

CREATE VIEW task_counting AS SELECT 0 AS sign, {counted}, took_ms FROM tasks WHERE 0;

CREATE TRIGGER task_counting_insert INSTEAD OF INSERT ON task_counting BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), coalesce(NEW.user, ''), NEW.status, {values})
    {add};
    INSERT INTO task_repo_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), {repo}, coalesce(NEW.model, ''), NEW.status, {values})
    {add};
    INSERT INTO task_repo_months VALUES (coalesce(substr(NEW.completed_at, 1, 7), ''), {repo}, coalesce(NEW.model, ''), NEW.status, {values})
    {add};
    INSERT INTO task_sums VALUES (coalesce(NEW.user, ''), NEW.status, {repo}, coalesce(NEW.model, ''), {values})
    {add};
    INSERT INTO task_repos VALUES ({repo}, coalesce(NEW.model, ''), NEW.status, {values})
    {add};
    DELETE FROM task_days WHERE NEW.sign < 0 AND tasks = 0 AND day = coalesce(substr(NEW.completed_at, 1, 10), '') AND user = coalesce(NEW.user, '') AND status = NEW.status;
    DELETE FROM task_repo_days WHERE NEW.sign < 0 AND tasks = 0 AND day = coalesce(substr(NEW.completed_at, 1, 10), '') AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
    DELETE FROM task_repo_months WHERE NEW.sign < 0 AND tasks = 0 AND month = coalesce(substr(NEW.completed_at, 1, 7), '') AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
    DELETE FROM task_sums WHERE NEW.sign < 0 AND tasks = 0 AND user = coalesce(NEW.user, '') AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
    DELETE FROM task_repos WHERE NEW.sign < 0 AND tasks = 0 AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
END;

CREATE TRIGGER tasks_insert AFTER INSERT ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (1, {counted NEW}, NEW.took_ms);
END;

CREATE TRIGGER tasks_update_old AFTER UPDATE OF {counted}
    ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (-1, {counted OLD}, OLD.took_ms);
END;

CREATE TRIGGER tasks_update_new AFTER UPDATE OF {counted}
    ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (1, {counted NEW}, NEW.took_ms);
END;

CREATE TRIGGER tasks_delete AFTER DELETE ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (-1, {counted OLD}, OLD.took_ms);
END;

INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1);
