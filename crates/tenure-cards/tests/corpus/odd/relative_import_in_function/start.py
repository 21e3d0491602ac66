def start(ctx):
    from .gone import word

    print(word)
