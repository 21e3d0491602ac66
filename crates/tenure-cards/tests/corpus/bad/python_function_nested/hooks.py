def outer(ctx):
    def inner(ctx):
        pass
