//! In which order hooks are called, which ends run, and how decisions combine.

use crate::semantics::support::*;
use tenure_core::agent::Agent;
use tenure_core::chat::{Chat, ChatEnd};
use tenure_core::hook::{
    self, After, Flow, HookAction, HookError, JumpTarget, Origin, Point, Points,
};
use tenure_core::message::ToolStatus;
use tenure_core::model::ModelResponse;
use tenure_core::{ErrorKind, Outcome};
use tokio::time::sleep;

const ENDS: Points = Points::NONE.with(Point::BeforeAgent).with(Point::AfterAgent);

#[tokio::test(start_paused = true)]
async fn g2_two_hooks_are_called_from_the_outside_in_and_back() {
    let log = Log::default();
    let tool_log = log.clone();
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["look"]), say("done")]))
            .tool(tool("look", move |_, _| {
                tool_log.add("TOOL");
                Box::pin(async { Ok("seen".into()) })
            }))
            .with_lifecycle(probe("A", &log))
            .with_lifecycle(probe("B", &log)),
    )
    .await;
    agent.run("go").await.unwrap();
    agent.shutdown().await;
    let model = [
        "A.before_model",
        "B.before_model",
        "A.model>",
        "B.model>",
        "B.model<",
        "A.model<",
        "B.after_model",
        "A.after_model",
    ];
    let mut expected = vec!["A.on_start", "B.on_start", "A.before_agent", "B.before_agent"];
    expected.extend(model);
    expected.extend(["A.tool>", "B.tool>", "TOOL", "B.tool<", "A.tool<"]);
    expected.extend(model);
    expected.extend(["B.after_agent(ok)", "A.after_agent(ok)"]);
    expected.extend(["B.on_shutdown(completed)", "A.on_shutdown(completed)"]);
    assert_eq!(log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn g2_entries_stand_by_origin_then_order_then_constraint() {
    let log = Log::default();
    let entry = |name| hook::hook(probe_at(name, &log, Point::BeforeAgent));
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(entry("rust"))
            .with_lifecycle(entry("late").order(5))
            .with_lifecycle(entry("early").order(-5))
            .with_lifecycle(entry("card").origin(Origin::Card))
            .with_lifecycle(entry("platform").origin(Origin::Platform))
            .with_lifecycle(entry("workflow").origin(Origin::Workflow))
            .with_lifecycle(entry("first").before("platform"))
            .with_lifecycle(entry("last").origin(Origin::Platform).after("late")),
    )
    .await;
    agent.run("go").await.unwrap();
    let expected = ["first", "platform", "workflow", "card", "early", "rust", "late", "last"];
    assert_eq!(log.take(), expected.map(|name| format!("{name}.before_agent")));

    let entrants: Vec<_> =
        agent.blueprint().entrants(Point::BeforeAgent).into_iter().map(|it| it.name).collect();
    assert_eq!(entrants.iter().map(|name| &**name).collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn g2_a_constraint_orders_entries_at_every_point() {
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(hook::hook(probe_at("A", &log, ENDS)).after("B"))
            .with_lifecycle(probe_at("B", &log, ENDS)),
    )
    .await;
    agent.run("go").await.unwrap();
    assert_eq!(
        log.take(),
        ["B.before_agent", "A.before_agent", "A.after_agent(ok)", "B.after_agent(ok)"]
    );
}

/// Differs from others on purpose: there, every end runs, also of hooks that never began.
#[tokio::test(start_paused = true)]
async fn g1_e9_a_finisher_is_entered_and_those_behind_it_are_not() {
    let log = Log::default();
    let finisher =
        hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Finish("answered early".into())) }));
    let model = script([]);
    let agent = started(
        Agent::builder("agent")
            .model(model.clone())
            .with_lifecycle(probe_at("ends only", &log, Point::AfterAgent))
            .with_lifecycle(probe_at("A", &log, ENDS))
            .with_lifecycle(finisher)
            .with_lifecycle(probe_at("B", &log, ENDS)),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.output(), report.steps, model.calls()), ("answered early", 0, 0));
    assert_eq!(log.take(), ["A.before_agent", "A.after_agent(ok)", "ends only.after_agent(ok)"]);
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn g1_a_hook_whose_begin_failed_gets_its_end() {
    struct FailsAndEnds(Log);
    #[async_trait::async_trait]
    impl hook::AgentLifecycle for FailsAndEnds {
        fn points(&self) -> Points {
            ENDS
        }
        async fn before_agent(
            &self,
            _: tenure_core::context::TurnCx<'_>,
            _: &mut tenure_core::drive::Input,
        ) -> Result<Flow, hook::HookError> {
            Err(hook::HookError::new("no"))
        }
        async fn after_agent(
            &self,
            _: tenure_core::context::TurnCx<'_>,
            end: &mut tenure_core::drive::TurnEnd<'_>,
        ) -> Result<After, hook::HookError> {
            self.0.add(format!("failer.after_agent({})", end.outcome()));
            Ok(After::Done)
        }
    }
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(probe_at("A", &log, ENDS))
            .with_lifecycle(FailsAndEnds(log.clone()))
            .with_lifecycle(probe_at("B", &log, ENDS)),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Hook, Outcome::Failed));
    assert_eq!(
        log.take(),
        ["A.before_agent", "failer.after_agent(failed)", "A.after_agent(failed)"]
    );
}

/// An `after_model` hook that decides this, and says that it was asked.
fn decides(log: &Log, name: &'static str, action: HookAction) -> impl hook::AgentLifecycle {
    let log = log.clone();
    hook::after_model(move |_, response| {
        log.add(format!("{name}:{}", response.content.text()));
        let action = action.clone();
        Box::pin(async move { Ok(action) })
    })
}

fn modified(text: &str) -> HookAction {
    HookAction::Modify(Box::new(ModelResponse::text(text)))
}

#[tokio::test(start_paused = true)]
async fn decisions_after_a_model_combine_and_every_entry_is_asked() {
    let end = || HookAction::JumpTo(JumpTarget::End);
    let again = || HookAction::JumpTo(JumpTarget::Model);
    let reject = |why: &str| HookAction::Reject(why.to_owned());
    // Outer and inner decision; then the output, or the reason, and how often the model was asked.
    // The inner one is asked first.
    let table = [
        (HookAction::Continue, HookAction::Continue, Ok("raw"), 1),
        (HookAction::Approve, HookAction::Continue, Ok("raw"), 1),
        (HookAction::Continue, modified("mild"), Ok("mild"), 1),
        (modified("outer"), modified("inner"), Ok("outer"), 1),
        (HookAction::Approve, modified("mild"), Ok("mild"), 1),
        (modified("mild"), end(), Ok("mild"), 1),
        (end(), modified("mild"), Ok("mild"), 1),
        (end(), again(), Ok("raw"), 1),
        (HookAction::Continue, end(), Ok("raw"), 1),
        (reject("never"), end(), Err("never"), 1),
        (end(), reject("never"), Err("never"), 1),
        (modified("mild"), reject("never"), Err("never"), 1),
        (reject("outer"), reject("inner"), Err("inner"), 1),
    ];
    for (outer, inner, expected, calls) in table {
        let case = format!("{outer:?} over {inner:?}");
        let log = Log::default();
        let model = script([say("raw"), say("second")]);
        let agent = started(
            Agent::builder("agent")
                .model(model.clone())
                .with_lifecycle(decides(&log, "outer", outer))
                .with_lifecycle(decides(&log, "inner", inner)),
        )
        .await;
        let result = agent.run("go").await;
        match (&result, expected) {
            (Ok(report), Ok(output)) => assert_eq!(report.output(), output, "{case}"),
            (Err(error), Err(reason)) => {
                assert_eq!(error.outcome(), Outcome::Denied, "{case}");
                assert_eq!(error.to_string(), reason, "{case}");
                assert_eq!(agent.history().len(), 1, "a rejected response is not committed");
            }
            (got, _) => panic!("{case}: {got:?}"),
        }
        assert_eq!(log.lines().len(), 2, "{case}: every entry is asked");
        assert_eq!(model.calls(), calls, "{case}");
        assert_valid(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_jumps_the_outermost_counts() {
    let log = Log::default();
    let model = script([say("first"), say("second")]);
    let once = Count::default();
    let outer = hook::after_model(move |_, _| {
        let first = once.up() == 1;
        Box::pin(async move {
            Ok(if first { HookAction::JumpTo(JumpTarget::Model) } else { HookAction::Continue })
        })
    });
    let inner_once = Count::default();
    let inner = hook::after_model(move |_, _| {
        let first = inner_once.up() == 1;
        Box::pin(async move {
            Ok(if first { HookAction::JumpTo(JumpTarget::End) } else { HookAction::Continue })
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(model.clone())
            .with_lifecycle(outer)
            .with_lifecycle(inner)
            .with_lifecycle(decides(&log, "innermost", HookAction::Continue)),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.output(), model.calls()), ("second", 2));
    assert_eq!(log.take(), ["innermost:first", "innermost:second"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_jump_to_the_model_is_an_error() {
    let model = script([]);
    let jumper =
        hook::after_model(|_, _| Box::pin(async { Ok(HookAction::JumpTo(JumpTarget::Model)) }));
    let agent = started(Agent::builder("agent").model(model.clone()).with_lifecycle(jumper)).await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook);
    assert!(error.to_string().contains("a second time"), "{error}");
    assert_eq!(model.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn g8_a_jump_past_tool_calls_settles_them_and_keeps_the_text() {
    for (target, output) in [(JumpTarget::End, "thinking"), (JumpTarget::Model, "done")] {
        let count = Count::default();
        let once = Count::default();
        let jumper = hook::after_model(move |_, _| {
            let first = once.up() == 1;
            Box::pin(async move {
                Ok(if first { HookAction::JumpTo(target) } else { HookAction::Continue })
            })
        });
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["look", "look"])]))
                .tool(counted("look", &count))
                .with_lifecycle(jumper)
                .with_lifecycle(hook::after_model(|_, response| {
                    let mut said = response.clone();
                    if !said.calls.is_empty() {
                        said.content = "thinking".into();
                    }
                    Box::pin(async move { Ok(HookAction::Modify(Box::new(said))) })
                })),
        )
        .await;
        let report = agent.run("go").await.unwrap();
        assert_eq!((report.output(), count.get()), (output, 0));
        let statuses: Vec<_> = results(report.history()).iter().map(|it| it.status).collect();
        assert_eq!(statuses, [ToolStatus::NotExecuted; 2]);
        assert_valid(&agent);
    }
}

/// Each scope with a begin that does not pass, and behind it an entry that has only the end.
#[tokio::test(start_paused = true)]
async fn g1_an_end_without_a_begin_runs_wherever_it_stands() {
    for hangs in [true, false] {
        let log = Log::default();
        let fails = move || async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Err(HookError::new("no"))
        };
        let (turn_end, chat_end, instance_end) = (log.clone(), log.clone(), log.clone());
        let agent = Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(hook::before_agent(move |_, _| Box::pin(fails())))
            .with_lifecycle(hook::before_chat(move |_| Box::pin(fails())))
            .with_lifecycle(hook::after_agent(move |_, end| {
                turn_end.add(format!("after_agent({})", end.outcome()));
                Box::pin(async { Ok(After::Done) })
            }))
            .with_lifecycle(hook::after_chat(move |_, end: &ChatEnd| {
                chat_end.add(format!("after_chat({})", end.outcome));
                Box::pin(async { Ok(()) })
            }))
            .with_lifecycle(hook::on_shutdown(move |_, reason| {
                instance_end.add(format!("on_shutdown({})", reason.as_str()));
                Box::pin(async { Ok(()) })
            }))
            .with_lifecycle(probe_at("behind", &log, ENDS));
        let agent = started(agent).await;
        let chat = Chat::new("chat", [agent.clone()]);
        let (_, _, ()) = tokio::join!(agent.run("go"), chat.run(async |_: &Chat| Ok(())), async {
            sleep(ms(5)).await;
            agent.cancel();
            chat.cancel();
        });
        agent.shutdown().await;
        let outcome = if hangs { "cancelled" } else { "failed" };
        let mut lines = log.take();
        lines.sort();
        let mut wanted = vec![
            format!("after_agent({outcome})"),
            format!("after_chat({outcome})"),
            "on_shutdown(completed)".to_owned(),
        ];
        wanted.sort();
        assert_eq!(lines, wanted, "whoever has a begin that was not reached has no end");
    }
}

#[tokio::test(start_paused = true)]
async fn g1_on_shutdown_without_on_start_runs_behind_a_start_that_fails() {
    let log = Log::default();
    let end = log.clone();
    let agent = Agent::builder("agent")
        .model(script([]))
        .with_lifecycle(hook::on_start(|_| Box::pin(async { Err(HookError::new("no")) })))
        .with_lifecycle(hook::on_shutdown(move |_, reason| {
            end.add(reason.as_str());
            Box::pin(async { Ok(()) })
        }))
        .build()
        .unwrap();
    agent.startup().await.unwrap_err();
    assert_eq!(log.take(), ["startup_failed"]);
}
