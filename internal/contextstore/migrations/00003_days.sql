CREATE TABLE day_budgets (
    day TEXT NOT NULL,                  -- of the universal time: 2026-05-30
    user TEXT NOT NULL,                 -- who asked for the runs
    turns INTEGER NOT NULL,             -- calls to models
    tokens INTEGER NOT NULL,            -- sent and received
    cost_micro_usd INTEGER NOT NULL,    -- of the calls whose price was known
    active_ms INTEGER NOT NULL,
    PRIMARY KEY (day, user)
) WITHOUT ROWID;

CREATE TABLE day_runs (
    uuid TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    day TEXT NOT NULL,                  -- that what it took since the last settlement counts for
    turns INTEGER NOT NULL,             -- of its totals, what is in day_budgets already
    tokens INTEGER NOT NULL,
    cost_micro_usd INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    held_turns INTEGER NOT NULL,        -- what it may take until it settles again
    held_tokens INTEGER NOT NULL,
    held_cost_micro_usd INTEGER NOT NULL,
    held_active_ms INTEGER NOT NULL,
    waits TEXT NOT NULL                 -- the limits that it is paused by, '' for none
) WITHOUT ROWID;

CREATE INDEX idx_day_runs_day ON day_runs(day);
