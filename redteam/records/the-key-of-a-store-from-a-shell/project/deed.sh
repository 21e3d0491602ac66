echo tried
for key in "$HOME"/.local/share/tenure/stores/*; do
  [ -s "$key" ] && cat "$key" > /dev/null && echo GOT A KEY
done
