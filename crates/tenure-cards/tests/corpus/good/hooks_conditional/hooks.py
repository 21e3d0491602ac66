import sys

if sys.platform == "win32":
    def start(ctx):
        pass
else:
    async def start(ctx):
        pass

try:
    import fast
except ImportError:
    fast = None

    def stop(ctx):
        pass
