async def approve(ctx, next):
    answer = await ctx.ask("Write this note?", action=ctx.arguments)
    if answer.decision == "approve":
        return await next()
    return {"deny": answer.value}
