cd other && tenure run a.md -m hi --trust
