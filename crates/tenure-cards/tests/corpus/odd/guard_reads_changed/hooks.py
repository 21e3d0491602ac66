import os
import queue

CACHE: dict[str, dict[str, int]] = {}
SEEN, DENIED = [], set()
TABLE = {"deploy": False}
OWN = {}
STATE = type("State", (), {})()


def start(ctx):
    CACHE["tools"]["deploy"] = 1
    STATE.limit = 3
    queue.update = len
    os.environ["LIMIT"] = "3"
    note(ctx.agent_name)


def note(name):
    SEEN.append(name)


def tool(name: str) -> str:
    DENIED.add(name)
    OWN["left"] = OWN.get("left", 3) - 1
    TABLE = {}
    TABLE["deploy"] = True
    return str(TABLE)


def check(ctx, next):
    OWN["left"] = 2
    if CACHE or len(SEEN) > 3 or ctx.tool_name in DENIED or STATE.limit > 2:
        return {"deny": "enough"}
    if TABLE[ctx.tool_name] or queue.update(OWN) or os.environ["LIMIT"]:
        return {"deny": "never"}
    return next()
