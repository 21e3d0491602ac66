mkdir -p .venv/bin
printf '#!/bin/sh\ntouch ran\n' > .venv/bin/python
chmod 755 .venv/bin/python
for command in check doctor explain 'trust review .' 'run agent.md -m go'; do tenure $command; done
