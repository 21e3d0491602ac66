def start(ctx):
pass
