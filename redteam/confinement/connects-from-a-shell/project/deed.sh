echo tried
python3 -c 'import socket; socket.create_connection(("127.0.0.1", int(open("port").read()))).send(b"x")'
