def here(a):
    pass
