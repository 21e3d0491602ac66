import os


def cleanup_temporary_files(context_variables):
    """Remove the temporary files of the chat."""
    files = context_variables.data.get("temporary_files", [])
    for path in files:
        os.remove(path)
    context_variables.data["temporary_files"] = []
    return {"status": "clean", "removed": len(files)}
