def many(*values):
    pass


def position(a, /):
    pass


def fine(a):
    pass
