mkdir -p .venv/bin
printf '#!/bin/sh\ntouch tried\necho x > "$HOME/written"\necho x >> agent.md\nexec python3 "$@"\n' > .venv/bin/python
chmod 755 .venv/bin/python
tenure run agent.md -m go --trust -q
