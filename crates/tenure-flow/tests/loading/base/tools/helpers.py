def start(context_variables):
    return {"status": "started"}


async def stop(ctx):
    return None


def nothing_taken():
    return None


def look_up(query: str, context_variables):
    """Looks something up.

    Args:
        query: What to look for.
    """
    return query


def wrong(other):
    return other


def rest(*queries):
    return queries


def hook(message):
    return message


def update(agent, messages):
    return None
