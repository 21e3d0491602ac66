sh deed.sh
tenure run b.md -m go -q --trust
