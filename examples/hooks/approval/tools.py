def pay(amount: int) -> str:
    """Pays.

    Args:
        amount: how much
    """
    return f"paid {amount}"
