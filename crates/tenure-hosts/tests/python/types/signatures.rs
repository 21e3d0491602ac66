//! Parameters: defaults, contexts, decorators, numbers, and those that need no conversion.

use crate::python::support::Lab;
use serde_json::json;
use tenure_core::tool::ToolSpec;

const FUNCTIONS: &str = r#"
from __future__ import annotations
import functools
from datetime import date
from typing import TYPE_CHECKING, Optional
if TYPE_CHECKING:
    from tenure import CallContext
def kind(*values): return " ".join(f"{type(it).__name__}:{it}" for it in values)
def logged(function):
    @functools.wraps(function)
    def wrapper(**kw): return "logged " + function(**kw)
    return wrapper
def t0(day: date = date(2026, 1, 1), n: int = None, *, last: Optional[date] = None) -> Nowhere: return kind(day, n, last)
async def t1(ctx: CallContext, day: date): return kind(day) + ctx.agent_name
def t2(day: date, **more: date): return kind(day, *more.values())
@logged
def t3(day: date): return kind(day)
def t4(untyped, day: date, any: object): return kind(untyped, day, any)
t5 = logged
"#;

#[tokio::test]
async fn defaults_and_contexts_stay_as_they_are() {
    let names = || (0..5).map(|at| format!("t{at}"));
    let lab = Lab::new(FUNCTIONS);
    let agent = lab.started(names().fold(lab.agent(), |it, name| it.tool(lab.tool(&name)))).await;
    for (call, expected) in [
        (r#"t0 {}"#, "date:2026-01-01 NoneType:None NoneType:None"),
        (
            r#"t0 {"day": "2026-01-31", "n": null, "last": null}"#,
            "date:2026-01-31 NoneType:None NoneType:None",
        ),
        (r#"t0 {"last": "2026-01-31"}"#, "date:2026-01-01 NoneType:None date:2026-01-31"),
        (r#"t0 {"day": null}"#, "argument `day` must be a date such as 2026-01-31, but is null"),
        (r#"t1 {"day": "2026-01-31"}"#, "date:2026-01-31agent"),
        (r#"t2 {"day": "2026-01-31", "a": "2026-02-01"}"#, "date:2026-01-31 date:2026-02-01"),
        (r#"t2 {"day": "2026-01-31", "a": "soon"}"#, "argument `a` must be a date"),
        (r#"t3 {"day": "2026-01-31"}"#, "logged date:2026-01-31"),
        (r#"t3 {"day": "x"}"#, "argument `day` must be a date"),
        (
            r#"t4 {"untyped": "2026-01-31", "day": "2026-01-31", "any": [1]}"#,
            "str:2026-01-31 date:2026-01-31 list:[1]",
        ),
    ] {
        let report = agent.run(format!("***CALL_TOOL {call}")).await.expect("the model reads it");
        assert!(report.output().starts_with(expected), "{call}: {}", report.output());
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn integers_of_any_length_keep_their_value() {
    let body = "return f'{type(x).__name__} {x + 1}'";
    let schema = |kind: &str| json!({ "type": "object", "properties": { "x": { "type": kind } } });
    let lab = Lab::new(&format!(
        "def whole(x: int): {body}\ndef half(x: float): return f'{{type(x).__name__}} {{x}}'\n\
         def listed(x: list): return str(x[0]['a'])\n"
    ));
    let tool = |name: &str, kind: &str| {
        let spec = ToolSpec::new(name, "a tool").parameters(schema(kind));
        lab.host.tool(lab.function(name), spec)
    };
    let agent = lab.agent().tool(tool("whole", "integer")).tool(tool("half", "number"));
    let agent = lab.started(agent.tool(tool("listed", "array"))).await;
    for (call, expected) in [
        (r#"whole {"x": 1}"#, "int 2"),
        (r#"whole {"x": 9223372036854775807}"#, "int 9223372036854775808"),
        (r#"whole {"x": 18446744073709551615}"#, "int 18446744073709551616"),
        (r#"whole {"x": 18446744073709551616}"#, "int 18446744073709551617"),
        (r#"whole {"x": -123456789012345678901234567890}"#, "int -123456789012345678901234567889"),
        (r#"whole {"x": 2.0}"#, "int 3"),
        (r#"whole {"x": 1e3}"#, "int 1001"),
        (r#"whole {"x": 1e999}"#, "number out of range"),
        (r#"whole {"x": NaN}"#, "Invalid JSON arguments"),
        (r#"half {"x": 1}"#, "float 1.0"),
        (r#"half {"x": 123456789012345678901234567890}"#, "float 1.2345678901234568e+29"),
        (
            r#"listed {"x": [{"a": 123456789012345678901234567890}]}"#,
            "123456789012345678901234567890",
        ),
    ] {
        let said = match agent.run(format!("***CALL_TOOL {call}")).await {
            Ok(report) => report.output().to_owned(),
            Err(error) => format!("{error:?}"),
        };
        assert!(said.contains(expected), "{call}: {said}");
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn a_function_of_plain_types_is_called_without_any_conversion() {
    let lab = Lab::new(
        r#"
import __main__
from typing import Optional
def plain(a: str, b: int = 1, c: dict = None, d=None) -> "Nowhere": return state()
def listed(a: "list[Optional[int]]"): return state()
def state(): return f"{bool(__main__.LATER)} {[it.plan for it in __main__.functions.values()][-1]}"
"#,
    );
    let agent = lab.agent().tool(lab.tool("plain")).tool(lab.tool("listed"));
    let agent = lab.started(agent).await;
    // The parts that convert are not even compiled for the first, and do nothing for the second.
    for (call, state) in
        [(r#"plain {"a": "x"}"#, "True None"), (r#"listed {"a": [1]}"#, "False None")]
    {
        let report = agent.run(format!("***CALL_TOOL {call}")).await.expect("it runs");
        assert_eq!(report.output(), state, "{call}");
    }
    agent.shutdown().await;
}
