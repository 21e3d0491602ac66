class Start:
    pass
