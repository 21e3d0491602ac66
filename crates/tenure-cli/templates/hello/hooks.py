"""Hooks of the greeter: plain functions. What they print is shown as log lines."""

import time


async def start(ctx):
    """Called when the agent starts. If it raises, the agent does not start."""
    ctx.state["since"] = time.time()
    print(f"{ctx.agent_name} is up")


async def stop(ctx):
    """Called when the agent stops, however that comes: the end, an error, Ctrl-C."""
    print(f"{ctx.agent_name} was up for {time.time() - ctx.state['since']:.2f} s")
