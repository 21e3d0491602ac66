async def check(ctx):
    return None
