"""Hooks that fit."""


async def start_agent(ctx):
    ctx.state["started"] = True


def stop_agent(ctx):
    pass


async def guard(ctx, next):
    return await next()


def audit(ctx, context_variables, verbose=False):
    pass


def input_hook(ctx, input):
    return input


async def after_turn(ctx):
    pass


def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


def run_code(code: str) -> str:
    """Runs code."""
    return code


alias = start_agent
