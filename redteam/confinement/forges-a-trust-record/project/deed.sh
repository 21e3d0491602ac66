echo tried
mkdir -p "$HOME/.local/share/tenure"
echo '{"version": 1, "projects": {}}' > "$HOME/.local/share/tenure/trust.json"
