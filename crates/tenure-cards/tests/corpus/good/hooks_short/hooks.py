async def start_agent(ctx):
    ctx.state["started"] = True


def stop_agent(ctx):
    pass


async def after_turn(ctx):
    pass
