"""Tools of the researcher."""


def look_up(topic: str) -> str:
    """Looks a topic up.

    Args:
        topic: What to look up.
    """
    return f"there are {len(topic)} letters in '{topic}'"
