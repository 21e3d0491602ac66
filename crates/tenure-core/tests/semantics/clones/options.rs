//! How a child behaves as a tool: how many, how long, and what it remembers.

use crate::semantics::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::clone::{ChildOptions, HistoryIn, HistoryOut};
use tenure_core::context::ExecutionContext;
use tenure_core::hook::{self, Flow, Point};
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::{ModelErrorKind, Usage};
use tokio::time::{Instant, sleep};

fn asks_child(times: usize) -> Reply {
    let ask =
        |n| ToolCall::new(format!("c{n}"), "agent__child", format!(r#"{{"message":"m{n}"}}"#));
    Reply::Call((1..=times).map(ask).collect())
}

fn child(model: Script) -> AgentBuilder {
    Agent::builder("child").model(model)
}

async fn parent(child: &Blueprint, options: ChildOptions, replies: Vec<Reply>) -> Agent {
    let builder = Agent::builder("parent").model(script(replies)).max_parallel_tools(100);
    started(builder.agent_tool_with(child, options)).await
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_clones_are_queued_and_none_is_dropped() {
    let (now, most) = (Count::default(), Arc::new(AtomicUsize::new(0)));
    let (counted, peak) = (now.clone(), most.clone());
    let child = child(script([]))
        .with_lifecycle(hook::before_agent(move |_, _| {
            let (now, most) = (counted.clone(), peak.clone());
            Box::pin(async move {
                most.fetch_max(now.up(), Ordering::SeqCst);
                sleep(ms(10)).await;
                now.down();
                Ok(Flow::Continue)
            })
        }))
        .blueprint()
        .unwrap();
    let parent =
        parent(&child, ChildOptions::default().max_parallel(3), vec![asks_child(10)]).await;
    let begun = Instant::now();
    let report = parent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["done"; 10]);
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(begun.elapsed(), ms(40));
}

#[tokio::test(start_paused = true)]
async fn a_child_over_its_limit_is_a_tool_error_and_the_parent_goes_on() {
    let log = Log::default();
    let child = child(script([Reply::Hang])).with_lifecycle(probe("C", &log)).blueprint().unwrap();
    let parent = parent(&child, ChildOptions::default().limit(secs(2)), vec![asks_child(1)]).await;
    let begun = Instant::now();
    let report = parent.run("go").await.unwrap();
    assert_eq!((report.output(), begun.elapsed()), ("done", secs(2)));
    let result = &results(report.history())[0];
    assert_eq!(result.status, ToolStatus::Error);
    assert!(result.content.text().contains("within its limit"), "{}", result.content);
    let lines = log.take();
    let ends = &lines[lines.len() - 2..];
    assert_eq!(ends, ["C.after_agent(timed_out)", "C.on_shutdown(completed)"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_in_a_child_counts_for_nobody() {
    use tenure_core::ask::{Answer, Ask, PendingAsk};
    let child = child(script([]))
        .with_lifecycle(hook::before_agent(|cx, _| {
            Box::pin(async move {
                cx.ask(Ask::input("well?")).await?;
                Ok(Flow::Continue)
            })
        }))
        .turn_limit(secs(1))
        .blueprint()
        .unwrap();
    let parent = started(
        Agent::builder("parent")
            .model(script([asks_child(1)]))
            .agent_tool_with(&child, ChildOptions::default().limit(secs(1)))
            .turn_limit(secs(2))
            .tool_limit(secs(1))
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let (result, ()) = tokio::join!(parent.run("go"), async {
        sleep(secs(3600)).await;
        assert_eq!(parent.phase(), tenure_core::phase::Phase::AwaitingToolApproval);
        parent.answer(&parent.pending_asks()[0].id, Answer::Approve);
    });
    assert_eq!(contents(result.unwrap().history()), ["done"]);
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_cannot_start_is_a_tool_error() {
    let log = Log::default();
    let child = child(script([]))
        .with_lifecycle(probe_at("C", &log, Point::OnShutdown))
        .with_lifecycle(Broken { point: Point::OnStart, fault: Fault::Error, after_next: false })
        .blueprint()
        .unwrap();
    let parent = parent(&child, ChildOptions::default(), vec![asks_child(1)]).await;
    let report = parent.run("go").await.unwrap();
    let result = &results(report.history())[0];
    assert_eq!((report.output(), result.status), ("done", ToolStatus::Error));
    assert!(result.content.text().starts_with("Spawn failed: "), "{}", result.content);
    assert_eq!(log.take(), ["C.on_shutdown(startup_failed)"], "rolled back, once");
}

#[tokio::test(start_paused = true)]
async fn a_childs_failure_is_a_tool_error_even_if_it_is_fatal_to_the_child() {
    for reply in [Reply::Fail(ModelErrorKind::Other), Reply::Fatal, Reply::Panic] {
        let child = child(script([reply])).blueprint().unwrap();
        let parent = parent(&child, ChildOptions::default(), vec![asks_child(1)]).await;
        let report = parent.run("go").await.unwrap();
        let result = &results(report.history())[0];
        assert_eq!((report.output(), result.status), ("done", ToolStatus::Error));
        assert!(result.content.text().starts_with("Error: "), "{}", result.content);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_of_a_child_are_a_tool_error_and_nothing_is_spawned() {
    let log = Log::default();
    let child =
        child(script([])).with_lifecycle(probe_at("C", &log, Point::OnStart)).blueprint().unwrap();
    for arguments in ["{}", r#"{"message":7}"#] {
        let reply = call_with("agent__child", arguments);
        let parent = parent(&child, ChildOptions::default(), vec![reply]).await;
        let report = parent.run("go").await.unwrap();
        let result = &results(report.history())[0];
        assert_eq!(result.status, ToolStatus::Error);
        assert!(result.content.text().contains("`message`"), "{}", result.content);
    }
    assert_eq!(log.take(), Vec::<String>::new());
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_clone_knows_what_its_history_mode_says() {
    let table = [
        (HistoryIn::None, HistoryOut::None, vec!["m1"]),
        (HistoryIn::None, HistoryOut::Child, vec!["m1"]),
        (HistoryIn::Child, HistoryOut::None, vec!["m1"]),
        (HistoryIn::Child, HistoryOut::Child, vec!["m1", "done", "m1"]),
        (HistoryIn::Parent, HistoryOut::None, vec!["hello", "hi", "m1"]),
    ];
    for (history_in, history_out, expected) in table {
        let model = script([]);
        let child = child(model.clone()).blueprint().unwrap();
        let options = ChildOptions::default().history_in(history_in).history_out(history_out);
        let replies = vec![say("hi"), asks_child(1), asks_child(1)];
        let parent = parent(&child, options, replies).await;
        parent.run("hello").await.unwrap();
        parent.run("go").await.unwrap();
        let case = format!("{history_in:?} {history_out:?}");
        assert_eq!(texts(&model.seen()[1]), expected, "{case}");
        assert_valid(&parent);
    }
}

#[tokio::test(start_paused = true)]
async fn g8_what_children_hand_out_stands_behind_the_batch_in_call_order() {
    let child = child(script([
        Reply::Slow(ms(50), Box::new(say("slow"))),
        Reply::Slow(ms(5), Box::new(say("fast"))),
    ]))
    .blueprint()
    .unwrap();
    let options = ChildOptions::default().history_out(HistoryOut::Parent);
    let parent = parent(&child, options, vec![asks_child(2)]).await;
    let report = parent.run("go").await.unwrap();
    let messages: Vec<_> = report.history().iter().cloned().collect();
    assert_eq!(texts(&messages), ["go", "", "slow", "fast", "m1", "slow", "m2", "fast", "done"]);
    assert_valid(&parent);
}

#[tokio::test(start_paused = true)]
async fn usage_is_merged_in_every_ending() {
    let calls = |calls: u64| {
        let mut usage = Usage::new(10 * calls, calls);
        usage.calls = calls;
        usage
    };
    // The child answers once, then ends like this.
    for (reply, limit) in [
        (say("fine"), None),
        (Reply::Fail(ModelErrorKind::Other), None),
        (Reply::Panic, None),
        (Reply::Hang, Some(secs(1))),
    ] {
        let second = u64::from(matches!(reply, Reply::Say(_)));
        let child =
            child(script([call(&["act"]), reply])).tool(ok_tool("act")).blueprint().unwrap();
        let mut options = ChildOptions::default();
        options.limit = limit;
        let parent = parent(&child, options, vec![asks_child(1)]).await;
        let report = parent.run("go").await.unwrap();
        assert_eq!(report.usage, calls(3 + second));
        assert_eq!(parent.usage(), report.usage, "once, not twice");
    }
}

#[tokio::test(start_paused = true)]
async fn usage_of_a_child_is_merged_when_the_parent_is_dropped_or_cancelled() {
    for drops in [true, false] {
        let child =
            child(script([call(&["act"]), Reply::Hang])).tool(ok_tool("act")).blueprint().unwrap();
        let parent = parent(&child, ChildOptions::default(), vec![asks_child(1)]).await;
        if drops {
            crate::semantics::drive::endings::drop_after(parent.run("go"), ms(10)).await;
            parent.ready().await.unwrap();
        } else {
            let (result, ()) = tokio::join!(parent.run("go"), async {
                sleep(ms(10)).await;
                parent.cancel();
            });
            assert_eq!(result.unwrap_err().report().unwrap().usage.calls, 2);
        }
        assert_eq!(parent.usage().calls, 2, "drops: {drops}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_gets_a_context_whose_parent_is_the_parents() {
    let seen = Log::default();
    let log = seen.clone();
    let child = child(script([]))
        .with_lifecycle(hook::before_agent(move |cx, _| {
            let context = cx.context().expect("the parent has one");
            let parent = context.parent().map(|parent| parent.trace_id().to_owned());
            log.add(format!("{} {parent:?}", context.trace_id()));
            Box::pin(async { Ok(Flow::Continue) })
        }))
        .blueprint()
        .unwrap();
    let parent = parent(&child, ChildOptions::default(), vec![asks_child(1)]).await;
    parent.request("go").context(ExecutionContext::new("trace-7")).run().await.unwrap();
    assert_eq!(seen.take(), [r#"trace-7 Some("trace-7")"#]);
}

#[tokio::test]
async fn a_model_may_say_the_task_alone_to_an_agent() {
    let child = child(script([])).blueprint().unwrap();
    for (name, arguments, status) in [
        ("agent__child", "find it", ToolStatus::Ok),
        ("agent__child", "\"find it\"", ToolStatus::Ok),
        ("agent__child", "{\"task\": \"find it\"}", ToolStatus::Ok),
        // What was cut off in the middle is not a task.
        ("agent__child", "{\"message\": \"find", ToolStatus::Error),
        ("agent__child", "[1]", ToolStatus::Error),
        ("look", "find it", ToolStatus::Error),
        ("look", "\"find it\"", ToolStatus::Error),
    ] {
        let call = ToolCall::new("c1", name, arguments);
        let builder = Agent::builder("parent").model(script([Reply::Call(vec![call])]));
        let builder = builder.agent_tool(&child).tool(ok_tool("look"));
        let report = started(builder).await.run("go").await.unwrap();
        assert_eq!(results(report.history())[0].status, status, "{name} {arguments}");
    }
}

#[tokio::test]
async fn an_argument_for_the_state_is_there_when_the_clone_starts_and_is_not_told() {
    let log = Log::default();
    let seen = log.clone();
    let child = child(script([]))
        .with_lifecycle(hook::before_agent(move |cx, input| {
            seen.add(format!("{} {:?}", input.content.text(), cx.state("_mode")));
            Box::pin(async { Ok(Flow::Continue) })
        }))
        .blueprint()
        .unwrap();
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "message": { "type": "string" }, "mode": { "type": "string" } },
    });
    let options = ChildOptions::default().parameters(schema).state_argument("mode");
    let call = |id: &str, arguments: &str| ToolCall::new(id, "agent__child", arguments);
    let calls = vec![call("c1", r#"{"message":"a","mode":"fast"}"#)];
    let parent = parent(&child, options, vec![Reply::Call(calls)]).await;
    parent.run("go").await.unwrap();
    assert_eq!(log.take(), [r#"a Some(String("fast"))"#]);
}
