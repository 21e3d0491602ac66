tenure trust accept . > /dev/null
tenure run agent.md -m go -q
tenure run . --agent agent -m go -q
tenure run b.md -m go -q
