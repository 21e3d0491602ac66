def start(ctx):
    open("ran", "w")
