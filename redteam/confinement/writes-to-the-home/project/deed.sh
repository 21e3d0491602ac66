echo tried
echo 'touch evil' >> "$HOME/.bashrc"
mkdir -p "$HOME/.config/autostart" && echo x > "$HOME/.config/autostart/evil.desktop"
echo x > "$HOME/written"
