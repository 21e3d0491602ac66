-- Conversations: what an agent has before it when the next message comes.
CREATE TABLE threads (
    thread  TEXT NOT NULL,
    agent   TEXT NOT NULL,
    head    TEXT NOT NULL,              -- JSON; refers to its list of `messages`
    length  INTEGER NOT NULL,           -- how many messages
    run     TEXT,                       -- the run that was last part of it
    user    TEXT,
    updated INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    PRIMARY KEY (thread, agent)
) WITHOUT ROWID;

CREATE INDEX threads_by_time ON threads (updated);

CREATE VIEW v_threads AS
SELECT thread, agent, length,
       strftime('%Y-%m-%d %H:%M:%S', updated / 1000.0, 'unixepoch') AS updated, run, user
FROM threads ORDER BY updated DESC;
