defined = 1
