def look(what: str) -> str:
    """Looks something up.

    Args:
        what: what to look up
    """
    return f"{what}: 42"
