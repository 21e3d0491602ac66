"""The names of lifecycle hooks."""

from typing import Literal

LifecycleHookType = Literal["on_start", "on_shutdown"]
VALID_LIFECYCLE_HOOK_TYPES = frozenset(("on_start", "on_shutdown"))
