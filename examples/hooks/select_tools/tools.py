"""Three tools, of which one is needed."""


def weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"It rains in {city}."


def mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"Sent to {to}."


def clock() -> str:
    """Tells the time."""
    return "It is noon."
