-- Whose the store is. Its one row names the key, which is kept with its owner; `sum` of this and
-- every other row is its seal: the CRC-32 of everything else in the row, and behind it the first 16
-- bytes of an HMAC-SHA256 of the same. `heads.chain` has the code behind the chain. Events are sealed
-- by their run, number and chain, which is of all there is in the row and before it.
CREATE TABLE identity (
    id  BLOB NOT NULL PRIMARY KEY,
    sum BLOB NOT NULL
) WITHOUT ROWID;
