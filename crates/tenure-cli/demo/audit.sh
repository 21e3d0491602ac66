#!/bin/sh
# A hook can be any command: JSON on standard input, JSON on standard output.
cat >/dev/null
echo "a turn begins" >&2
echo '{"allow": true}'
