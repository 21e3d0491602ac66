tenure run agent.md -m first -q --trust &
while ! [ -s .tenure/tenure.db ]; do sleep 0.05; done
sleep 0.5
mkdir -p ../second/.tenure; cp agent.md agent.json tenure.toml ../second; ln .tenure/tenure.db ../second/.tenure/tenure.db
cd ../second && tenure run --resume -q --trust && echo BOTH
wait
