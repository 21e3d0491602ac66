"""The lifecycle tools of this workflow.

What a function writes into `context_variables.data` is there for whoever comes next.
"""


def open_desk(context_variables):
    context_variables.data["drafts"] = 0
    print(f"a new sheet for {context_variables.data['user_id']}")


async def count_draft(context_variables):
    context_variables.data["drafts"] += 1
    return {"drafts": context_variables.data["drafts"]}


def close_desk(context_variables):
    print(f"it took {context_variables.data['drafts']} drafts")
