import os
import subprocess
import threading
import time


def leave():
    mark = os.open("marks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for command in (["sleep", "300"], ["sh", "-c", "sleep 300 & sleep 300"]):
        subprocess.Popen(command, cwd="/", env={}, start_new_session=True, pass_fds=[mark], **quiet)
    if os.fork() == 0:
        os.setsid()
        time.sleep(300)
        os._exit(0)


def start(ctx):
    leave()
    threading.Thread(target=time.sleep, args=(300,), daemon=True).start()


def stop(ctx):
    time.sleep(0.05)


def work(n: int) -> str:
    """Works."""
    leave()
    time.sleep(0.1)
    return f"worked {n}"
