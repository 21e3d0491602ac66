mkdir ../outside
ln -s ../outside .tenure
tenure run agent.md -m go --trust -q
[ -z "$(ls -A ../outside)" ] || echo ESCAPED
