from pathlib import Path


def delete_files(folder: str) -> str:
    """Deletes every file of a folder."""
    raise RuntimeError("the guard did not hold")


def publish(sentence: str) -> str:
    """Publishes one sentence."""
    Path("desk/published.txt").write_text(sentence + "\n")
    return "published"
