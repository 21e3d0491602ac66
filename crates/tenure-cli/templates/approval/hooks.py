"""A person decides about every note. Nothing is written unless this hook calls `next`."""


async def approve(ctx, next):
    answer = await ctx.ask("Write this note?", action=ctx.arguments)
    if answer.decision == "approve":
        return await next()
    if answer.decision == "edit":
        return await next(answer.value)
    if answer.decision == "respond":
        return answer.value
    return {"deny": answer.value or "the note was rejected"}
