-- Answers that are kept for a while, by a key that says everything they depend on. What is in here
-- may be gone at any time: what is over, and what is oldest when there is no room for more.
CREATE TABLE cache (
    id      INTEGER PRIMARY KEY,        -- 1, 2, 3: in the order in which they were written
    key     TEXT NOT NULL UNIQUE,
    value   TEXT NOT NULL,              -- JSON
    size    INTEGER NOT NULL,           -- bytes of the key and the value
    written INTEGER NOT NULL,
    expires INTEGER,                    -- none if only room ends it
    sum     INTEGER NOT NULL
);

-- How much there is, and what is over, without a look at the answers themselves.
CREATE INDEX cache_by_size ON cache (size);
CREATE INDEX cache_by_end ON cache (expires) WHERE expires IS NOT NULL;

CREATE VIEW v_cache AS
SELECT key, size, strftime('%Y-%m-%d %H:%M:%S', written / 1000.0, 'unixepoch') AS written,
       strftime('%Y-%m-%d %H:%M:%S', expires / 1000.0, 'unixepoch') AS expires, value
FROM cache ORDER BY id;
