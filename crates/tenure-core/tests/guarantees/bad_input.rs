//! What a person got wrong is a typed error that says what to do, and nothing is half-started.

use crate::guarantees::support::{Acts, Does, Events, Log, Says, Watch, agent};
use async_trait::async_trait;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::clone::ChildOptions;
use tenure_core::context::{ExecutionContext, ToolCx};
use tenure_core::hook::{self, HookRegistry, Limit, Point, Policy, Registration};
use tenure_core::life::LifecycleConfig;
use tenure_core::message::{History, Message, ToolCall};
use tenure_core::phase::AgentState;
use tenure_core::state::{Ownership, Reducer};
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{Error, ErrorKind};

fn refused(builder: AgentBuilder) -> Error {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    error
}

/// Asserts that the agent cannot be built, and that the error says all of this.
fn refuses(builder: AgentBuilder, parts: &[&str]) {
    let text = refused(builder).to_string();
    assert!(text.starts_with("agent `agent` cannot be built: "), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

fn plain() -> AgentBuilder {
    agent("agent", Says::Done)
}

fn named(name: &'static str) -> Registration {
    hook::hook(Watch::new(name, &Log::default())).named(name)
}

/// A tool that says this of itself.
struct Spec(ToolSpec);

#[async_trait]
impl Tool for Spec {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    async fn call(
        &self,
        _cx: ToolCx<'_>,
        _arguments: &serde_json::Value,
    ) -> Result<ToolOutput, ToolError> {
        Ok("".into())
    }
}

#[test]
fn bad_input_zero_limits_are_refused_wherever_they_stand() {
    let zero = Duration::ZERO;
    refuses(plain().turn_limit(zero), &["the limit `turn` is zero", "more than zero"]);
    refuses(plain().model_limit(zero), &["the limit `model` is zero"]);
    refuses(plain().tool_limit(zero), &["the limit `tool` is zero"]);
    for name in ["hook", "observer", "end", "ends"] {
        let mut builder = plain();
        let limits = &mut builder.config_mut().limits;
        match name {
            "hook" => limits.hook = zero,
            "observer" => limits.observer = zero,
            "end" => limits.end = zero,
            _ => limits.ends = zero,
        }
        refuses(builder, &[&format!("the limit `{name}` is zero")]);
    }
    refuses(
        plain().with_lifecycle(named("slow").limit(zero)),
        &["hook `slow` has a limit of zero"],
    );
    let tool = Spec(ToolSpec::new("slow", "").limit(zero));
    refuses(plain().tool(tool), &["tool `slow` has a limit of zero"]);
    let config = LifecycleConfig::default().timeout(zero);
    refuses(plain().lifecycle(config), &["the lifecycle timeout is zero", "leave it out"]);
    let child = agent("child", Says::Done).blueprint().unwrap();
    let options = ChildOptions::default().limit(zero).max_parallel(0);
    refuses(
        plain().agent_tool_with(&child, options),
        &["max_parallel of the agent tool `agent__child` is zero", "the limit of the agent tool"],
    );
}

#[test]
fn bad_input_negative_and_unreadable_limits_are_refused() {
    for seconds in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
        let error = Limit::seconds(seconds).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("give a number more than zero"), "{error}");
    }
    for text in ["-5s", "0ms", "5", "five", "", "1d"] {
        assert_eq!(text.parse::<Limit>().unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

#[test]
fn bad_input_no_model_no_name_and_no_steps() {
    refuses(Agent::builder("agent"), &["no model", "`model(...)`"]);
    refuses(plain().max_steps(0), &["max_steps is zero", "allow at least one"]);
    refuses(plain().max_parallel_tools(0), &["max_parallel_tools is zero", "at least one"]);
    let error = refused(agent("", Says::Done));
    assert!(error.to_string().contains("it has no name; give it one"), "{error}");
}

#[test]
fn bad_input_two_tools_of_one_name() {
    let twice = plain().tool(Acts("read", Does::Works)).tool(Acts("read", Does::Works));
    refuses(twice, &["two tools have the name `read`", "tell them apart"]);
    let child = agent("child", Says::Done).blueprint().unwrap();
    let twice = plain().agent_tool(&child).tool(Acts("agent__child", Does::Works));
    refuses(twice, &["two tools have the name `agent__child`"]);
    refuses(plain().tool(Acts("", Does::Works)), &["a tool has no name"]);
}

#[test]
fn bad_input_hook_names_and_orders() {
    let twice = plain().with_lifecycle(named("guard")).with_lifecycle(named("guard"));
    refuses(twice, &["two hooks have the name `guard`", "a name of its own"]);
    let missing = plain().with_lifecycle(named("a").before("ghost").after("phantom"));
    let known = "there are: a";
    refuses(missing, &["before `ghost`", "after `phantom`", "no hook of that name", known]);
    let cycle = plain()
        .with_lifecycle(named("a").before("b"))
        .with_lifecycle(named("b").before("c"))
        .with_lifecycle(named("c").before("a"))
        .with_lifecycle(named("bystander").after("a"));
    refuses(cycle, &["`a`, `b`, `c`", "take one of their `before` or `after` constraints away"]);
    let own = plain().with_lifecycle(named("a").after("a"));
    refuses(own, &["`a`", "constraints away"]);
}

#[test]
fn bad_input_deny_where_nothing_is_left_to_deny() {
    for point in [Point::OnShutdown, Point::AfterAgent] {
        let guard = named("guard").policy_at(point, Policy::Deny);
        let what = format!("policy deny at {point}");
        refuses(plain().with_lifecycle(guard), &["hook `guard`", &what, "use continue there"]);
    }
    let ends = hook::after_agent(|_cx, _end| Box::pin(async { Ok(hook::After::Done) }));
    refuses(
        plain().with_lifecycle(hook::hook(ends).policy(Policy::Deny)),
        &["policy deny at after_agent"],
    );
    let arrows = hook::on_transition(|_cx| Box::pin(async { Ok(()) }));
    refuses(
        plain().with_lifecycle(hook::hook(arrows).policy(Policy::Deny)),
        &["policy deny at on_transition"],
    );
}

#[test]
fn bad_input_a_tool_that_writes_what_nobody_declared() {
    let writes = || Spec(ToolSpec::new("count", "").writes("total"));
    refuses(
        plain().tool(writes()),
        &["tool `count` writes the key `total`", "`Ownership::shared` and a reducer"],
    );
    plain()
        .tool(writes())
        .ownership(Ownership::new().shared("total", Reducer::Sum))
        .build()
        .unwrap();
}

#[test]
fn bad_input_lifecycle_hooks_of_unknown_kind_or_name() {
    let mut builder = plain()
        .hook_registry(HookRegistry::new().register("known", Watch::new("known", &Log::default())));
    let hooks = &mut builder.config_mut().lifecycle_hooks;
    hooks.insert("on_begin".to_owned(), "known".to_owned());
    hooks.insert("on_start".to_owned(), "unknown".to_owned());
    refuses(
        builder,
        &[
            "invalid lifecycle hook type `on_begin`; the types are on_start and on_shutdown",
            "lifecycle hook on_start names `unknown`, which is not registered; registered are: known",
        ],
    );
}

#[test]
fn bad_input_everything_wrong_is_said_at_once_and_nothing_starts() {
    let log = Log::default();
    let mut events = Events::new();
    let builder = Agent::builder("agent")
        .events(&events.bus)
        .max_steps(0)
        .max_parallel_tools(0)
        .turn_limit(Duration::ZERO)
        .lifecycle(LifecycleConfig::default().timeout(Duration::ZERO))
        .tool(Acts("read", Does::Works))
        .tool(Acts("read", Does::Works))
        .with_lifecycle(hook::hook(Watch::new("guard", &log)).policy(Policy::Deny))
        .with_lifecycle(named("a").before("b").limit(Duration::ZERO))
        .with_lifecycle(named("b").before("a").after("ghost"));
    refuses(
        builder,
        &[
            "max_steps is zero",
            "max_parallel_tools is zero",
            "the limit `turn` is zero",
            "the lifecycle timeout is zero",
            "two tools have the name `read`",
            "policy deny at after_agent",
            "policy deny at on_shutdown",
            "hook `a` has a limit of zero",
            "after `ghost`",
            "each want to stand before one another",
            "it has no model",
        ],
    );
    assert!(log.entries().is_empty());
    assert!(events.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn bad_input_at_startup_leaves_the_agent_as_it_was() {
    let log = Log::default();
    let agent = plain().with_lifecycle(Watch::new("watch", &log)).build().unwrap();
    let zero = LifecycleConfig::default().timeout(Duration::ZERO);
    let error = agent.startup_with(zero).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("give it more than zero"), "{error}");
    assert_eq!(agent.state(), AgentState::Uninitialized);
    assert!(log.entries().is_empty());
    agent.startup().await.unwrap();
    agent.shutdown().await;
    let over = agent.startup().await.unwrap_err();
    assert_eq!((over.kind(), over.state()), (ErrorKind::NotReady, Some(AgentState::Terminated)));
    assert!(over.to_string().contains("build a new instance"), "{over}");
}

#[tokio::test(start_paused = true)]
async fn bad_input_of_a_request_starts_no_turn() {
    let agent = plain().build().unwrap();
    agent.startup().await.unwrap();
    let zero = agent.request("go").limit(Duration::ZERO);
    let stream = agent.request("go").limit(Duration::ZERO).stream();
    let context = ExecutionContext::new("").with_memory_scope("notes").with_conversation_id("c");
    let context = agent.request("go").context(context);
    for (error, part) in [
        (zero.run().await.unwrap_err(), "the request's limit is zero"),
        (stream.finish().await.unwrap_err(), "the request's limit is zero"),
        (context.run().await.unwrap_err(), "trace_id is required; memory_scope needs a user_id"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(agent.metrics().total_requests, 0);
    let call = ToolCall::new("1", "read", "{}");
    let dangling = Message::Assistant { content: "".into(), calls: vec![call] };
    let history: History = [Message::user("go"), dangling].into_iter().collect();
    let error = agent.set_history(history).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::History);
    assert!(agent.history().is_empty());
}

#[test]
fn a_registration_that_could_never_matter_is_refused() {
    let begins = || hook::before_agent(|_, _| Box::pin(async { Ok(hook::Flow::Continue) }));
    refuses(
        plain().with_lifecycle(hook::hook(begins()).named("misplaced").only(Point::AfterAgent)),
        &["hook `misplaced` has none of the points", "`only`"],
    );
    refuses(
        plain().with_lifecycle(
            hook::hook(begins()).named("guard").policy_at(Point::AfterModel, Policy::Deny),
        ),
        &["hook `guard` has the policy deny at after_model, a point that it does not have"],
    );
}

#[test]
fn more_hooks_than_a_chain_has_places_for_are_refused() {
    let begins = || hook::before_agent(|_, _| Box::pin(async { Ok(hook::Flow::Continue) }));
    let crowded = (0..10_001).fold(plain(), |builder, _| builder.with_lifecycle(begins()));
    refuses(crowded, &["it has 10001 hooks, and there can be 10000"]);
}
