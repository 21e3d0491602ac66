-- What agents know across runs. A namespace is `agent` or `agent/user`.
CREATE TABLE memory (
    id        INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    value     TEXT NOT NULL,            -- JSON
    version   INTEGER NOT NULL,         -- 1, 2, 3: how often it was written
    updated   INTEGER NOT NULL,
    writer    TEXT NOT NULL,            -- the instance that wrote it last
    sum       INTEGER NOT NULL,
    UNIQUE (namespace, key)
);

-- What keys and values say in words; `rowid` is the id in `memory`. `place` is one word for the
-- namespace, so that a search does not look through everybody else's memory.
CREATE VIRTUAL TABLE memory_text USING fts5 (
    place, key, text, tokenize = "unicode61 remove_diacritics 2", prefix = '2 3'
);

CREATE TRIGGER memory_forgotten AFTER DELETE ON memory BEGIN
    DELETE FROM memory_text WHERE rowid = old.id;
END;

CREATE VIEW v_memory AS
SELECT namespace, key, value, version,
       strftime('%Y-%m-%d %H:%M:%S', updated / 1000.0, 'unixepoch') AS updated, writer
FROM memory ORDER BY namespace, key;
