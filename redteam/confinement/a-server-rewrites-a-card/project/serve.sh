touch tried
echo x >> agent.md
echo x > "$HOME/written"
