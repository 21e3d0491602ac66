tenure trust accept . > /dev/null
printf 'def help():\n    open("ran", "w")\n' > helper.py
tenure run agent.md -m go -q
