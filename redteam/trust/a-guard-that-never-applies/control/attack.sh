tenure trust accept . > /dev/null
sed -i 's/timeout: 20s/timeout: 20s, when: "false"/' agent.md
tenure trust accept . > /dev/null
tenure run agent.md -m go -q
