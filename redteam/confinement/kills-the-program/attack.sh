tenure run agent.md -m go --trust -q
code=$?
[ $code -eq 0 ] || echo KILLED $code
