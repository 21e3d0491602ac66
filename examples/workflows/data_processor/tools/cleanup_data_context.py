async def release_data_resources(context_variables):
    """Release database connection pool."""
    db_pool = context_variables.data.get('db_connection')
    if db_pool:
        await db_pool.close()
        del context_variables.data['db_connection']
    
    return {"status": "released"}
