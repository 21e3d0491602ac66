def write_note(text: str) -> str:
    """Writes."""
    open("note.txt", "a").write(text + "\n")
    return "written"
