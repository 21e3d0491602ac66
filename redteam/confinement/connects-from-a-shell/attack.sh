python3 - <<'END' &
import socket
server = socket.create_server(("127.0.0.1", 0))
open("../port", "w").write(str(server.getsockname()[1]) + "\n")
server.settimeout(60)
try:
    client, _ = server.accept()
    client.settimeout(1)
    try: data = client.recv(10_000)
    except OSError: data = b""
    open("got", "wb").write(data)
except OSError:
    pass
END
listener=$!
trap 'kill $listener' EXIT
while ! [ -s ../port ]; do sleep 0.05; done
cp ../port port
tenure run agent.md -m go --trust -q
sleep 0.3
