cat agent.md
