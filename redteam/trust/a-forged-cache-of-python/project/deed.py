import helper


def start(ctx):
    helper.help()
    open("good", "w")
