env -i "$(command -v tenure)" answer "$(cat ask)" approve --store .tenure/tenure.db --by ada 2>&1
env -i HOME="$HOME" "$(command -v tenure)" answer "$(cat ask)" approve
