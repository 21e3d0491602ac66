from . import gone
from .helpers import word
from .helpers.deeper import other
from ...........far import away
from .folder import nothing


def start(ctx):
    print(gone, word, other, away, nothing)
