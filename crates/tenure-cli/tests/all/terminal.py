"""Runs a program on a pseudo-terminal and talks to it.

    terminal.py '[["wait for", "type"], ...]' program args...

Where what to type begins with "$ ", it is run by a shell in its place.

What the terminal shows is printed, and the program's exit code is passed on.
"""

import json
import os
import pty
import select
import subprocess
import sys
import time

KEYS = {"^C": b"\x03", "^D": b"\x04"}


def main() -> int:
    talk = [tuple(pair) for pair in json.loads(sys.argv[1])]
    command = sys.argv[2:]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    seen = b""
    searched = 0
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                chunk = os.read(fd, 4096)
            except OSError:
                chunk = b""
            if not chunk:
                break
            seen += chunk
        while talk:
            at = seen.find(talk[0][0].encode(), searched)
            if at < 0:
                break
            searched = at + len(talk[0][0].encode())
            answer = talk.pop(0)[1]
            if answer.startswith("$ "):
                subprocess.run(answer[2:], shell=True, check=True)
                continue
            os.write(fd, KEYS.get(answer, answer.encode() + b"\n"))
    else:
        os.kill(pid, 9)
        print("terminal.py: it did not end in time", file=sys.stderr)
    sys.stdout.buffer.write(seen)
    sys.stdout.flush()
    if talk:
        print(f"terminal.py: never seen: {talk[0][0]!r}", file=sys.stderr)
        return 99
    status = os.waitpid(pid, 0)[1]
    return os.waitstatus_to_exitcode(status) % 256


sys.exit(main())
