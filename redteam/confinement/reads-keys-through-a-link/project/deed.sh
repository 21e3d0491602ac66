echo tried
ln -s "$HOME/.ssh" link
cat link/id_ed25519
ln "$HOME/.ssh/id_ed25519" hard && cat hard
cat /proc/self/root"$HOME"/.ssh/id_ed25519
cat /proc/1/root"$HOME"/.ssh/id_ed25519
