"""A hook for every point, with every helper. Nothing here does anything but show its form."""

from __future__ import annotations

import json
from typing import Optional, Union

from tenure import (
    AgentLifecycleContext,
    AgentLifecycleHooks,
    AgentProtocol,
    Answer,
    Cancelled,
    ChatContext,
    ContextVariables,
    Denied,
    EndContext,
    LifecycleContext,
    LifecycleHookFunction,
    LifecycleToolManager,
    ModelContext,
    ModelResult,
    NextError,
    Reply,
    ResponseContext,
    SyncToolContext,
    ToolContext,
    ToolResult,
    TransitionContext,
    TurnContext,
    allow,
    approve,
    continue_with,
    deny,
    finish,
    jump,
    modify,
    reject,
)


def start(ctx: LifecycleContext) -> None:
    """on_start: what is left in the state is there for every other hook of the instance."""
    ctx.state["greeting"] = f"hello from {ctx.agent_name}"
    ctx.state["seen"] = set()
    if ctx.has_context and ctx.context is not None:
        print(ctx.context.trace_id)


def stop(ctx: LifecycleContext) -> None:
    """on_shutdown"""
    ctx.log(f"{ctx.agent.name} ends: {ctx.reason}")


def open_chat(ctx: ChatContext) -> Optional[Reply]:
    """before_chat"""
    ctx.context_variables.data["opened_by"] = ctx.instance_id
    return None


async def check_input(ctx: TurnContext) -> Optional[Reply]:
    """before_agent"""
    if not ctx.input.strip():
        return finish("say something")
    if "password" in ctx.input:
        raise Denied("no secrets, please")
    ctx.input = ctx.input.strip()
    return allow()


async def trim(ctx: ModelContext) -> None:
    """before_model"""
    if len(ctx.request.messages) > 100:
        del ctx.request.messages[:-100]
        ctx.persist()


async def fall_back(ctx: ModelContext) -> ModelResult:
    """wrap_model_call"""
    try:
        return await ctx.next()
    except Cancelled:
        raise
    except NextError:
        return await ctx.next({"params": {"model": "a-smaller-one"}})


def judge(ctx: ResponseContext) -> Optional[Reply]:
    """after_model"""
    text = ctx.response.text
    if "nonsense" in text:
        return reject("that is nonsense")
    if "again" in text:
        return jump("model")
    if "TODO" in text:
        return modify(text=text.replace("TODO", "later"))
    return approve() if ctx.response.calls else None


async def guard(ctx: ToolContext) -> Union[ToolResult, Reply]:
    """wrap_tool_call, as a coroutine"""
    if ctx.tool.name != "shell":
        return await ctx.next()
    answer: Answer = await ctx.ask(f"run {ctx.arguments}?", action=ctx.arguments, expires="5m")
    if not answer.approved:
        return deny(f"not run: {answer.value}")
    if answer.decision == "edit":
        return await ctx.next(answer.value)
    return await ctx.next()


def remember(ctx: SyncToolContext) -> Union[ToolResult, str]:
    """wrap_tool_call, as a plain function"""
    number = ctx.step("number", lambda: 4)
    result = ctx.next({**ctx.arguments, "number": number})
    if result.status == "error":
        return f"it did not work: {result.content}"
    result.content = json.dumps({"result": result.content})
    return result


def close_turn(ctx: EndContext) -> Optional[Reply]:
    """after_agent"""
    if ctx.outcome != "ok" or ctx.output is None:
        return None
    if not ctx.output:
        return continue_with("please say something")
    ctx.output += "\n"
    return None


def moved(ctx: TransitionContext) -> None:
    """on_transition"""
    if ctx.to_phase == "error":
        ctx.request_shutdown()


def begin(ctx: Union[LifecycleContext, TurnContext, TransitionContext]) -> None:
    """Several points: ``hook_type`` says which, and so what the context has."""
    if ctx.hook_type == "before_agent":
        ctx.input = ctx.input.strip()
    elif ctx.hook_type == "on_transition":
        ctx.log(f"{ctx.from_phase} to {ctx.to_phase}")
    else:
        ctx.log(f"{ctx.hook_type}: {ctx.reason}, {ctx.config.max_tokens or 'any'} tokens")


async def start_later(ctx: AgentLifecycleContext) -> None:
    """on_start, as a coroutine"""
    agent: AgentProtocol = ctx.agent
    if ctx.config.temperature is not None and ctx.config.temperature > 1:
        raise ValueError(f"{agent.name} would be too creative")


HOOKS = AgentLifecycleHooks(on_start=start_later, on_shutdown=stop)


def named(hook: LifecycleHookFunction) -> str:
    return hook.__name__


async def close(manager: LifecycleToolManager, variables: ContextVariables) -> None:
    """What calls the lifecycle tools of a workflow, for a test of one's own."""
    for tool in manager.load_lifecycle_tools():
        if tool.trigger == "after_chat":
            await manager.trigger_after_chat(variables)
