import asyncio
import sqlite3


class Pool:
    """A few connections to one database, lent out one call at a time."""

    def __init__(self, connections):
        self.size = len(connections)
        self._all = connections
        self._free = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)

    async def fetch(self, query, *values):
        connection = await self._free.get()
        try:
            return connection.execute(query, values).fetchall()
        finally:
            self._free.put_nowait(connection)

    async def close(self):
        for connection in self._all:
            connection.close()
        self._all = []


async def create_db_pool(size=3):
    """A pool over a small database in memory that all of its connections share."""
    address = "file:orders?mode=memory&cache=shared"
    connections = [
        sqlite3.connect(address, uri=True, check_same_thread=False) for _ in range(size)
    ]
    with connections[0] as first:
        first.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, status TEXT)")
        first.execute("DELETE FROM orders")
        states = [("open",), ("open",), ("shipped",)]
        first.executemany("INSERT INTO orders (status) VALUES (?)", states)
    return Pool(connections)


async def allocate_data_resources(context_variables):
    """Allocate database connection pool for DataProcessorAgent."""
    db_pool = await create_db_pool()
    
    # Store in context for agent access
    context_variables.data['db_connection'] = db_pool
    
    return {"status": "allocated", "pool_size": db_pool.size}
