from pathlib import Path

CHANGES = Path(__file__).resolve().parents[2] / "CHANGES.txt"


def entries_of(version: str) -> str:
    """The entries of a version.

    Args:
        version: The version
    """
    lines = CHANGES.read_text().splitlines()
    return "\n".join(line[len(version) + 1 :] for line in lines if line.startswith(version + " "))
