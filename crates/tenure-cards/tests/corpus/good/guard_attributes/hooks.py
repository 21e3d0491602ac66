client = None
limit = 5


def connected():
    global client
    if client is None:
        client = object()
    return client


def turn(ctx):
    global limit
    limit = 10
    connected()
    # A guard sets it as well.
    ctx.agent.rules = []
    ctx.agent.only_here = 1
    # What every agent has.
    ctx.agent.name = "x"
    # Another object of the same name.
    ctx.state["agent"] = 1
    agent = ctx.agent
    agent = object()
    agent.other = 1


def first(ctx):
    ctx.agent.rules = ["a"]
    return {"allow": True}


def check(ctx, next):
    connected()
    limit = 3
    agent = ctx.get_agent("other")
    if agent and agent.only_here:
        return {"deny": str(limit)}
    names = [ctx.agent.name, ctx.agent.instance_id, ctx.agent.rules, ctx.agent.message_history]
    if ctx.agent.other:
        return {"deny": str(names)}
    return next()
