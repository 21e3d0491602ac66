tenure run agent.md -m go --trust -q
cat said
cd other && tenure run a.md -m hi -q
