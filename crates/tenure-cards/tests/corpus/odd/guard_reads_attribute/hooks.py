limit = 5
seen = []


def start(context):
    agent = context.agent
    agent.pool = object()
    setattr(context.agent, "began", True)
    if (same := context.agent) is not None:
        same.walrus = 1
    agent.left, agent.right = 1, 2
    note(context)


def note(it):
    it.agent.noted = True
    mark(it.agent)


def mark(who):
    who.marked = True


def turn(ctx):
    global limit
    limit = 10
    ctx.agent.turns += 1


def count(ctx):
    ctx.runner.calls = getattr(ctx.runner, "calls", 0) + 1


def remember(text: str, ctx) -> str:
    """Keeps a text."""
    ctx.agent.last = text
    return "kept"


def check(c):
    who = c.agent
    if who.pool is None or getattr(who, "began", False):
        return {"deny": "no"}
    if hasattr(c.agent, "walrus") or who.left or c.agent.right:
        return {"deny": "no"}
    if c.agent.turns > limit:
        return {"deny": "too many"}
    return {"allow": helper(c)}


def helper(given):
    return given.agent.noted and given.agent.marked


async def judge(ctx, next):
    if ctx.runner.calls or ctx.agent.last:
        return {"deny": "no"}
    return await next()
