async def count_orders(status: str, context_variables) -> int:
    """Count the orders that have a status.

    Args:
        status: The status, such as open or shipped
    """
    # The very object that was allocated before the turn.
    db_pool = context_variables.data["db_connection"]
    rows = await db_pool.fetch("SELECT count(*) FROM orders WHERE status = ?", status)
    return rows[0][0]
