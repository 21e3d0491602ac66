async def wrap(ctx):
    return await ctx.next()
