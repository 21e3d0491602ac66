tenure run agent.md -m go --trust -q
cd other && tenure run a.md -m hi -q
