"""Tools of the clerk: the model sees their names, parameters and docstrings."""

from pathlib import Path


def write_note(name: str, text: str) -> str:
    """Writes a note.

    Args:
        name: The name of the note's file.
        text: What it says.
    """
    (Path("notes") / Path(name).name).write_text(text + "\n")
    return f"wrote {len(text)} characters to {name}"
