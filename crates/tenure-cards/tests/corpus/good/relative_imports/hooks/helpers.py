word = 'x'
