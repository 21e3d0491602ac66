import sqlite3


def query(text: str, connection: sqlite3.Connection | None = None):
    """Asks the database."""
