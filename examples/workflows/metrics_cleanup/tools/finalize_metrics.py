import os


def submit_workflow_metrics(context_variables):
    """Count what the chat wrote. It runs first, so the files are still there."""
    files = context_variables.data.get("temporary_files", [])
    metrics = {"files": len(files), "bytes": sum(os.path.getsize(path) for path in files)}
    print(f"metrics | workflow={context_variables.data['workflow_name']} | {metrics}")
    context_variables.data["metrics"] = metrics
    return {"status": "submitted", **metrics}
