def one(ctx): pass


def two(ctx): pass
