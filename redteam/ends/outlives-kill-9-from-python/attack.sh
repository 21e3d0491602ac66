tenure run agent.md -m go --trust -q &
while ! [ -e tried ]; do sleep 0.02; done
kill -9 $!
wait
