def stop_agent(ctx):
    pass


async def after_turn(ctx):
    pass
