cd other && tenure trust accept . && tenure run a.md -m hi -q
