start = 5
nothing = None
