mkdir -p .git/hooks
printf '[core]\n' > .git/config
tenure run agent.md -m go --trust -q
grep -q fsmonitor .git/config && echo CHANGED
