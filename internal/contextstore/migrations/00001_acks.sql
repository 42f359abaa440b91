CREATE TABLE outbox_acks (
    key TEXT PRIMARY KEY,               -- the effect's idempotency key
    uuid TEXT NOT NULL,                 -- of the run whose outbox it stands in
    kind TEXT NOT NULL,                 -- push, comment, label ...
    acked_at TEXT NOT NULL,             -- when it was delivered (ISO 8601)
    result TEXT                         -- what the other side answered: an id, a URL
);

CREATE INDEX idx_outbox_acks_uuid ON outbox_acks(uuid);
