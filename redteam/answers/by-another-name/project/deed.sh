cp "$(command -v tenure)" ./innocent
env -i HOME="$HOME" ./innocent answer "$(cat ask)" approve
