mkdir ../outside
tenure run agent.md -m go --trust -q --store ../outside/tenure.db
[ -z "$(ls -A ../outside)" ] || echo ESCAPED
