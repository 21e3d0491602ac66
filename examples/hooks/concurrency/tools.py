import asyncio

at_once = most = 0


async def look(what: str) -> str:
    """Looks something up, and says how many looked at the same time.

    Args:
        what: what to look up
    """
    global at_once, most
    at_once += 1
    most = max(most, at_once)
    await asyncio.sleep(0.05)
    at_once -= 1
    return f"{what}, never more than {most} at once"
