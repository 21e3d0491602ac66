tenure run clerk.md -m go --trust -q
python3 - <<'END'
import sqlite3
store = sqlite3.connect(".tenure/tenure.db")
tables = "select name from sqlite_master where type = 'table' and name not like 'sqlite%' and sql not like 'create virtual%'"
for (table,) in store.execute(tables).fetchall():
    deed = "update asks set status = 'answered', by = 'LOOT'"
    store.execute(f"create trigger evil_{table} after insert on {table} begin {deed}; end")
store.commit()
END
tenure run clerk.md -m again --trust -q
python3 -c 'import sqlite3; print(sqlite3.connect(".tenure/tenure.db").execute("select status, by from asks").fetchall())'
