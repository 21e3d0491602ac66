import time


async def start(ctx):
    ctx.state["since"] = time.time()
    print(f"{ctx.agent_name} is up")


async def stop(ctx):
    print(f"{ctx.agent_name} leaves after {time.time() - ctx.state['since']:.1f} s")


async def guard(ctx, next):
    if ctx.tool.name == "delete_files":
        return {"deny": "nobody deletes files here"}
    return await next()


async def approve(ctx, next):
    answer = await ctx.ask("May the editor publish this?", action=ctx.arguments)
    if answer.decision == "approve":
        return await next()
    if answer.decision == "edit":
        return await next(answer.value)
    return {"deny": answer.value or "not published"}
