import subprocess


async def check(ctx, next):
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    return await next()
