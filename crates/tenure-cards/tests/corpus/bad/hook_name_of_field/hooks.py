def f(ctx):
    pass
