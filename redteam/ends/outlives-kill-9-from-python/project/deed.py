import os, subprocess, time


def start(ctx):
    mark = os.open("marks", os.O_WRONLY | os.O_CREAT)
    subprocess.Popen(["sleep", "300"], env={}, cwd="/", start_new_session=True, pass_fds=[mark])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
    open("tried", "w")
    time.sleep(300)
