tenure run clerk.md -m go --trust -q
tenure asks --json | sed 's/.*"id": *"\([^"]*\)".*/\1/' > ask
tenure answer "$(cat ask)" approve
tenure run --resume --trust -q
