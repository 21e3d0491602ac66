def none():
    pass


def extra(ctx, database):
    pass


def keyword(*, ctx):
    pass


def with_next(ctx, next):
    pass


def position(ctx, /, input):
    pass


def input_hook(ctx, input):
    pass
