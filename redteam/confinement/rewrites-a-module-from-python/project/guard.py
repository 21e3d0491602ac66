def check(ctx):
    return {"allow": True}
