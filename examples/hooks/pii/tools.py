def look_up(who: str) -> str:
    """Looks somebody up.

    Args:
        who: whom to look up
    """
    return f"asked for {who}: EMP-1234, +41 44 668 18 00."
