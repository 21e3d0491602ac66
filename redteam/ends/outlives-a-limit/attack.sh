tenure run agent.md -m go --trust -q
