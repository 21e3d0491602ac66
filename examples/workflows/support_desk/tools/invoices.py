INVOICES = {"2041": "number 2041, 12.50 EUR, paid"}


def find_invoice(number: str) -> str:
    """Find an invoice by its number.

    Args:
        number: The number on the invoice
    """
    return INVOICES.get(number, "unknown")
