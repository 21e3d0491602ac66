def stop_agent(ctx):
    pass


def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


def run_code(code: str) -> str:
    """Runs code."""
    return code
