import os
import tempfile


def write_draft(text: str, context_variables) -> int:
    """Write a draft to a temporary file.

    Args:
        text: What to write
    """
    handle, path = tempfile.mkstemp(prefix="draft-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    files = context_variables.data.get("temporary_files", [])
    context_variables.data["temporary_files"] = [*files, path]
    return len(text)
