(ulimit -f 8; tenure run agent.md -m go --trust; echo "code $?")
for most in 4 8 12 16 20; do (ulimit -n $most; tenure run agent.md -m go --trust; echo "code $?"); done
tenure run agent.md -m go --trust -q && echo fine
