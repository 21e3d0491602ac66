def check(ctx):
    return {"allow": ctx.agent.only_here == 1}
