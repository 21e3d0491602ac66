from __future__ import annotations

import json
from typing import TYPE_CHECKING

import helpers
import helpers as same
import redis.asyncio
from . import helpers as again
from .helpers import word
from .shared import deep, defined
from .shared.deep import leaf
from .. import beside

if TYPE_CHECKING:
    from .stubs import Kind

try:
    from . import fast
except ImportError:
    fast = None


def start(ctx):
    print(json, redis, helpers, same, again, word, deep, defined, leaf, beside, fast)
