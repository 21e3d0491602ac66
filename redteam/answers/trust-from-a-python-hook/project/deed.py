import subprocess


def start(ctx):
    done = subprocess.run(["tenure", "trust", "accept", "."], cwd="other", capture_output=True, text=True)
    open("said", "w").write(done.stdout + done.stderr)
