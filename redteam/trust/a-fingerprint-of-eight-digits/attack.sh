whole=$(tenure trust review . | sed -n 's/.*--fingerprint  *\([0-9a-f]*\).*/\1/p' | head -n 1)
short=$(printf %.8s "${whole:-0123456789abcdef}")
tenure trust accept . --fingerprint "$short" && echo ACCEPTED
tenure run agent.md -m go -q
