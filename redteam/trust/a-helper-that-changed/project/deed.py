import helper


def start(ctx):
    helper.help()
