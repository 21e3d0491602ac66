-- What runs there are, and what happened in them. Times are milliseconds since 1970, UTC; the views
-- show them readably. `sum` is the CRC-32 of everything else in the row.

-- Something was last recorded of a run at the time of its last event.
CREATE TABLE runs (
    id        TEXT NOT NULL PRIMARY KEY,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    status    TEXT NOT NULL,          -- running, waiting, parked, ended
    outcome   TEXT,                   -- once it has ended
    input     TEXT NOT NULL,          -- JSON
    output    TEXT,                   -- JSON
    error     TEXT,
    thread    TEXT,
    user      TEXT,
    lives     INTEGER NOT NULL,
    driven    INTEGER,                -- since when, by the process that has the file
    started   INTEGER NOT NULL,
    ended     INTEGER,
    compacted INTEGER,                -- when its events were deleted
    sum       INTEGER NOT NULL
) WITHOUT ROWID;

-- The journal and the event log are one: a step is an event of type `step.recorded`.
CREATE TABLE events (
    run      TEXT NOT NULL,
    seq      INTEGER NOT NULL,        -- 1, 2, 3 in each run, without a gap
    time     INTEGER NOT NULL,
    type     TEXT NOT NULL,
    agent    TEXT,
    instance TEXT,
    trace    TEXT,
    cause    TEXT,
    path     TEXT,                    -- where in the run
    kind     TEXT,                    -- of a step or a scope
    name     TEXT,                    -- of a step; the id of a scope
    ordinal  INTEGER,
    input    TEXT,                    -- a step's input, as a hash
    data     TEXT,                    -- JSON; {"$blob": ..} and {"$messages": ..} refer to below
    sum      INTEGER NOT NULL,
    chain    BLOB NOT NULL,           -- SHA-256 of the chain before it and this row, 16 bytes
    PRIMARY KEY (run, seq)
);

-- How far each run's events go. A damaged page that hides the last of them is noticed by this.
CREATE TABLE heads (
    run   TEXT NOT NULL PRIMARY KEY,
    seq   INTEGER NOT NULL,
    chain BLOB NOT NULL               -- of that row
) WITHOUT ROWID;

-- Everything ends once.
CREATE UNIQUE INDEX events_ends ON events (run, name) WHERE type = 'scope.ended';

-- Big texts and messages, by the first 16 bytes of their SHA-256.
CREATE TABLE blobs (
    hash BLOB NOT NULL UNIQUE,
    body TEXT NOT NULL
);

-- Lists of messages, by the hash of the messages' hashes in a row. A list says what it takes over
-- from its parent: `body` is JSON, [from, count] for messages of the parent and "hash" for others.
CREATE TABLE messages (
    hash   BLOB NOT NULL UNIQUE,
    parent BLOB,
    depth  INTEGER NOT NULL,          -- how many parents it has
    body   TEXT NOT NULL
);

-- What others want of a run: `cancel` or `kill`.
CREATE TABLE requests (
    run  TEXT NOT NULL,
    wish TEXT NOT NULL,
    by   TEXT,
    time INTEGER NOT NULL,
    sum  INTEGER NOT NULL,
    PRIMARY KEY (run, wish)
) WITHOUT ROWID;
