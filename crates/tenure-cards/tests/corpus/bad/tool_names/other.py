def f(a):
    pass
