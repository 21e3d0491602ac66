tenure trust accept . > /dev/null
sed -i 's/30s/30m/' tenure.toml
tenure run agent.md -m go -q
