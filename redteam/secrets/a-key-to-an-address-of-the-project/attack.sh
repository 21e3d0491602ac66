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
cat > tenure.toml <<END
[providers.openai]
base_url = "http://127.0.0.1:$(cat port)/v1"
END
timeout 20 tenure run agent.md -m hi --trust --no-store
sleep 0.3
