def open_ticket(context_variables):
    """Open a ticket for the chat."""
    context_variables.data["ticket"] = {"state": "open", "answers": 0}
    return {"ticket": context_variables.data["chat_id"]}


def note_answer(context_variables):
    """Count an answer."""
    ticket = dict(context_variables.data["ticket"])
    ticket["answers"] += 1
    context_variables.data["ticket"] = ticket
    return ticket


def close_ticket(context_variables):
    """Close the ticket."""
    ticket = {**context_variables.data["ticket"], "state": "closed"}
    context_variables.data["ticket"] = ticket
    print(f"ticket closed | answers={ticket['answers']} | user={context_variables.data['user_id']}")
    return ticket
