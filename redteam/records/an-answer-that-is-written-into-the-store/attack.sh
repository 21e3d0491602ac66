tenure run clerk.md -m go --trust -q
tenure asks --json | sed 's/.*"id": *"\([^"]*\)".*/\1/' > ask
python3 - <<'END'
import sqlite3
store = sqlite3.connect(".tenure/tenure.db")
answer = "{\"decision\":\"approve\"}"
store.execute("update asks set status = 'answered', answer = ?, by = 'root', decided = created + 1", (answer,))
print(store.execute("select status, answer from asks").fetchall())
store.commit()
END
tenure run --resume --trust -q
