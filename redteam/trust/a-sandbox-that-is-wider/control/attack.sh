tenure trust accept . > /dev/null
printf '[sandbox]\npreset = "full"\n' > tenure.toml
tenure trust accept . > /dev/null
tenure run agent.md -m go -q
