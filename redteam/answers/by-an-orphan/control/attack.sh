tenure run clerk.md -m go --trust -q
tenure asks --json | sed 's/.*"id": *"\([^"]*\)".*/\1/' > ask
sh deed.sh
sleep 2
tenure run --resume --trust -q
