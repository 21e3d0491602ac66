# café
def start(ctx): pass
