def start(ctx:
    pass
