"""A tool with much to say."""


def read(book: str) -> str:
    """Reads a book."""
    return f"{book}: " + "and so it went on and on. " * 500 + "The end."
