-- What people were asked, and what they said. The first answer counts: it is written by one
-- UPDATE ... WHERE status = 'open', by whichever process comes first.
CREATE TABLE asks (
    id       TEXT NOT NULL PRIMARY KEY, -- the id of the step that asks, in every life of its run
    run      TEXT NOT NULL,
    step     TEXT NOT NULL,             -- the step, for people
    agent    TEXT NOT NULL,
    hook     TEXT,                      -- the hook that asks; none if a tool itself does
    tool     TEXT,                      -- the tool whose call it is about
    prompt   TEXT NOT NULL,
    question TEXT NOT NULL,             -- JSON: everything that was asked
    action   TEXT NOT NULL,             -- SHA-256 of exactly what would be done, in hex
    created  INTEGER NOT NULL,
    expires  INTEGER,
    status   TEXT NOT NULL,             -- open, answered, expired, cancelled
    answer   TEXT,                      -- JSON; once it is decided
    by       TEXT,                      -- who decided
    decided  INTEGER,
    sum      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX asks_open ON asks (created) WHERE status = 'open';
CREATE INDEX asks_by_run ON asks (run, created);

CREATE VIEW v_asks AS
SELECT a.id, a.status, a.agent, a.tool, a.prompt, a.answer, a.by,
       strftime('%Y-%m-%d %H:%M:%S', a.created / 1000.0, 'unixepoch') AS asked,
       strftime('%Y-%m-%d %H:%M:%S', a.expires / 1000.0, 'unixepoch') AS expires,
       strftime('%Y-%m-%d %H:%M:%S', a.decided / 1000.0, 'unixepoch') AS decided,
       a.run, r.name AS run_name, a.step
FROM asks a LEFT JOIN runs r ON r.id = a.run ORDER BY a.created DESC;
