import sqlite3
from collections.abc import Callable
from dataclasses import dataclass


class Client:
    def __init__(self, url):
        self.url = url


@dataclass
class Job:
    name: str
    client: "Client"


def query(text: str, connection: sqlite3.Connection):
    """Asks the database."""


def each(jobs: list[Job], then: Callable[[str], None]):
    """Does every job."""
