async def start_agent(ctx):
    ctx.state["started"] = True


def stop_agent(ctx):
    pass


async def guard(ctx, next):
    return await next()


def audit(ctx, context_variables, verbose=False):
    pass


def input_hook(ctx, input):
    return input
