# A stranger runs the project, answers its question, and ships the folder with the store in it.
mine=$HOME
export HOME="$PWD/../stranger"
mkdir "$HOME"
tenure run clerk.md -m go --trust -q
tenure asks --json | sed 's/.*"id": *"\([^"]*\)".*/\1/' > ask
tenure answer "$(cat ask)" approve
export HOME="$mine"
tenure run clerk.md -m go --trust -q --adopt-store
