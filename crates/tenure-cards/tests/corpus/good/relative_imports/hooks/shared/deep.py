leaf = 1
