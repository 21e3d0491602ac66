"""Runs a program on a pseudo-terminal and talks to it.

    terminal.py '[["wait for", "type"], ...]' program args...

Where what to type begins with "$ ", it is run by a shell in its place, with the process id of the
program as $PID. Where it begins with "= ", it is typed as it is, with Python's escapes and without
Enter. "^C", "^D", "^J" and "^R" are those keys.

What the terminal shows is printed, and the program's exit code is passed on. Each step has so many
seconds as STEP says (20 unless it is set), and all of them together three times that.
"""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

KEYS = {"^C": b"\x03", "^D": b"\x04", "^J": b"\x0a", "^R": b"\x12", "": b"\r"}
STEP = float(os.environ.get("STEP", "20"))


def bytes_of(text: str) -> bytes:
    if text.startswith("= "):
        return text[2:].encode().decode("unicode_escape").encode("latin-1")
    # Enter sends a carriage return, as keyboards do.
    return KEYS.get(text, text.encode() + b"\r")


def main() -> int:
    talk = [tuple(pair) for pair in json.loads(sys.argv[1])]
    command = sys.argv[2:]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    seen = b""
    searched = 0
    until = time.monotonic() + 3 * STEP
    step = time.monotonic() + STEP
    while time.monotonic() < min(until, step):
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
            step = time.monotonic() + STEP
            if answer.startswith("$ "):
                environment = {**os.environ, "PID": str(pid)}
                subprocess.run(answer[2:], shell=True, check=True, env=environment)
                continue
            os.write(fd, bytes_of(answer))
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
