def ask(question: str) -> str:
    """Asks somebody.

    Args:
        question: What to ask
    """
    from mcp import ClientSession

    return str(ClientSession) + question


def look() -> str:
    """Looks."""
    return "seen"


def main() -> None:
    from fast_agent import FastAgent

    FastAgent("by itself")


if __name__ == "__main__":
    import fast_agent.cli

    main()
