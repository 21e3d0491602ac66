tenure run clerk.md -m go --trust -q
tenure asks --json | sed 's/.*"id": *"\([^"]*\)".*/\1/' > ask
tenure run agent.md -m go --trust -q
tenure run --resume --trust -q
