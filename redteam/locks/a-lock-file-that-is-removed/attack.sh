tenure run agent.md -m first -q --trust &
while ! [ -s .tenure/tenure.db ]; do sleep 0.05; done
sleep 0.5
rm -f .tenure/*.lock .tenure/*lock*; ls -A .tenure
cd . && tenure run --resume -q --trust && echo BOTH
wait
