def fetch(what: str) -> str:
    """Fetches something, or rather does not.

    Args:
        what: what to fetch
    """
    raise RuntimeError("connection refused by 10.0.0.7:5432")
