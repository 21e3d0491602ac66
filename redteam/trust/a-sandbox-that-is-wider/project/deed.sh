touch "$HOME/written"
