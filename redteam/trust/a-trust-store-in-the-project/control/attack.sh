tenure trust accept . > /dev/null
tenure run agent.md -m go -q
