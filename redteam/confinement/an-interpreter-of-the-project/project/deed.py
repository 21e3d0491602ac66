def start(ctx):
    pass
