async def check(ctx, tool):
    pass
