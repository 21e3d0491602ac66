"""Hooks of the researcher. Every clone has its own start and stop, and its own `ctx.state`."""


async def start(ctx):
    print(f"{ctx.agent_name} is at work")


async def stop(ctx):
    print(f"{ctx.agent_name} goes home")


async def guard(ctx, next):
    if "secret" in ctx.arguments["topic"]:
        return {"deny": "secrets are not looked up"}
    return await next()
