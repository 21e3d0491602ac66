calls = 0


def fetch(what: str) -> str:
    """Fetches something. The first time it fails.

    Args:
        what: what to fetch
    """
    global calls
    calls += 1
    if calls < 2:
        raise RuntimeError("the connection was lost")
    return f"{what}, at the second try"
