mkdir -p .venv/bin
printf '#!/bin/sh\ntouch ran\n' > .venv/bin/python
chmod 755 .venv/bin/python
tenure run agent.md -m go --trust
