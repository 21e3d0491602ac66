sh deed.sh
cd other && tenure run a.md -m hi -q
