def help():
    open('evil', 'w')
