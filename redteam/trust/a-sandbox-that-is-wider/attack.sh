tenure trust accept . > /dev/null
printf '[sandbox]\npreset = "full"\n' > tenure.toml
tenure run agent.md -m go -q
