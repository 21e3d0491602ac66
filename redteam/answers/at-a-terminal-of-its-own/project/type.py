import os, pty, sys, time
child, terminal = pty.fork()
if child == 0:
    os.execvp("tenure", ["tenure", "answer", open("ask").read().strip()])
for _ in range(20):
    time.sleep(0.1)
    try:
        os.write(terminal, b"a\n")
        sys.stdout.write(os.read(terminal, 4000).decode(errors="replace"))
    except OSError:
        break
os.waitpid(child, 0)
