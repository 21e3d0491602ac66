//! One critic: approve, reject, modify; rounds; what it sees; streams and resumed runs.

use crate::judge::support::*;
use serde_json::json;
use tenure_core::ErrorKind;
use tenure_core::agent::Agent;
use tenure_core::message::Message;
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hooks::critic::{Critic, CriticContext, Judged, OnRejected};
use tenure_models::Scripted;
use tenure_testkit::RecordedModel;

#[tokio::test]
async fn an_answer_that_is_approved_is_given_as_it_is() {
    let critic = says([APPROVE]);
    let agent = Agent::builder("a")
        .model(Scripted::new(["fine"]))
        .with_lifecycle(Critic::new(critic.clone()));
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "fine");
    assert_eq!(critic.requests().len(), 1);
}

#[tokio::test]
async fn a_rejected_answer_is_made_again_with_the_critique_for_this_call_only() {
    let creator = says(["first", "second", "third"]);
    let critic = Scripted::new([reject("too short"), reject("too dull"), APPROVE.to_owned()]);
    let agent = Agent::builder("a")
        .model(creator.clone())
        .instruction("be brief")
        .with_lifecycle(Critic::new(critic));
    let report = ask(agent, "hello").await.unwrap();
    assert_eq!(report.output(), "third");
    assert_eq!(report.history().iter().map(Message::text).collect::<Vec<_>>(), ["hello", "third"]);

    assert_eq!(asked(&creator, 0).1, ["hello"]);
    let (instruction, messages) = asked(&creator, 2);
    assert_eq!(instruction, "be brief");
    assert_eq!(messages.len(), 5, "{messages:?}");
    assert_eq!((&*messages[1], &*messages[3]), ("first", "second"));
    assert!(messages[2].contains("too short") && messages[4].contains("too dull"), "{messages:?}");
}

#[tokio::test]
async fn what_is_still_rejected_after_the_last_round_is_denied() {
    let creator = says(["one", "two", "three", "four"]);
    let critic = RecordedModel::new(Scripted::from_fn(|_, call| {
        Ok(tenure_core::model::ModelResponse::text(reject(&format!("no {call}"))))
    }));
    let agent = Agent::builder("a")
        .model(creator.clone())
        .with_lifecycle(Critic::new(critic.clone()).rounds(2));
    let error = ask(agent, "hello").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("Critic rejected: no 2"), "{error}");
    assert_eq!((creator.requests().len(), critic.requests().len()), (3, 3));
}

#[tokio::test]
async fn without_rounds_an_answer_is_only_judged() {
    let creator = says(["one", "two"]);
    let agent = Agent::builder("a")
        .model(creator.clone())
        .with_lifecycle(Critic::new(Scripted::new([reject("no")])).rounds(0));
    assert!(ask(agent, "hello").await.unwrap_err().is_denied());
    assert_eq!(creator.requests().len(), 1);
}

#[tokio::test]
async fn the_last_answer_or_the_best_one_can_count_in_the_end() {
    let run = async |then| {
        let critic = Scripted::new([scored("a", 4), scored("b", 7), scored("c", 2)]);
        let agent = Agent::builder("a")
            .model(Scripted::new(["one", "two", "three"]))
            .with_lifecycle(Critic::new(critic).on_rejected(then));
        ask(agent, "hello").await.unwrap().output().to_owned()
    };
    assert_eq!(run(OnRejected::Accept).await, "three");
    assert_eq!(run(OnRejected::Best).await, "two");
}

#[tokio::test]
async fn of_answers_without_scores_the_best_is_the_last() {
    let critic = Scripted::new([reject("a"), reject("b"), reject("c")]);
    let agent = Agent::builder("a")
        .model(Scripted::new(["one", "two", "three"]))
        .with_lifecycle(Critic::new(critic).on_rejected(OnRejected::Best));
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "three");
}

#[tokio::test]
async fn a_modified_answer_is_what_is_given_and_kept() {
    let agent = Agent::builder("a")
        .model(Scripted::new(["teh answer"]))
        .with_lifecycle(Critic::new(Scripted::new([modify("the answer")])));
    let report = ask(agent, "hello").await.unwrap();
    assert_eq!(report.output(), "the answer");
    assert_eq!(report.history().last().map(Message::text), Some("the answer"));
}

#[tokio::test]
async fn a_critic_has_a_context_of_its_own_unless_it_is_to_share_the_creators() {
    let run = async |context| {
        let critic = says([APPROVE, APPROVE]);
        let hook = Critic::new(critic.clone()).context(context).instruction("look at the facts");
        let agent = Agent::builder("a")
            .model(Scripted::new(["one", "two"]))
            .instruction("the secret plan")
            .with_lifecycle(hook);
        let both = async |agent: &Agent| {
            agent.run("the first question").await?;
            agent.run("the second question").await
        };
        agent.build().unwrap().scoped(both).await.unwrap();
        let (instruction, messages) = asked(&critic, 1);
        assert!(instruction.starts_with("look at the facts"), "{instruction}");
        assert_eq!(messages.len(), 1);
        assert!(messages[0].contains("two"), "it judges the answer");
        messages[0].clone()
    };
    let own = run(CriticContext::Own(1)).await;
    assert!(own.contains("the second question"), "{own}");
    assert!(!own.contains("the secret plan") && !own.contains("the first question"), "{own}");
    let two = run(CriticContext::Own(2)).await;
    assert!(two.contains("the first question") && !two.contains("one"), "{two}");
    let shared = run(CriticContext::Shared).await;
    for part in ["the secret plan", "the first question", "one", "the second question"] {
        assert!(shared.contains(part), "{part}: {shared}");
    }
}

fn clock(calls: &RecordedModel) -> tenure_core::agent::AgentBuilder {
    let clock = FnTool::new(ToolSpec::new("clock", "The time"), |_| Ok("12:00".into()));
    Agent::builder("a").model(calls.clone()).tool(clock)
}

#[tokio::test]
async fn which_answers_are_judged_is_an_option() {
    let judged = async |judged| {
        let creator = RecordedModel::new(Scripted::empty().call("clock", json!({})).text("noon"));
        let critic = RecordedModel::new(Scripted::from_fn(|_, _| {
            Ok(tenure_core::model::ModelResponse::text(APPROVE))
        }));
        let agent = clock(&creator).with_lifecycle(Critic::new(critic.clone()).judges(judged));
        assert_eq!(ask(agent, "what time is it?").await.unwrap().output(), "noon");
        (0..critic.requests().len())
            .map(|call| asked(&critic, call).1[0].contains("calls"))
            .collect::<Vec<_>>()
    };
    assert_eq!(judged(Judged::Answers).await, [false]);
    assert_eq!(judged(Judged::Calls).await, [true]);
    assert_eq!(judged(Judged::All).await, [true, false]);
}

#[tokio::test]
async fn tool_calls_that_are_rejected_are_not_made() {
    let script = Scripted::empty().call("clock", json!({ "zone": "UTC" })).text("I do not know.");
    let creator = RecordedModel::new(script);
    let hook = Critic::new(Scripted::new([reject("nobody asked for the time")]));
    let agent = clock(&creator).with_lifecycle(hook.judges(Judged::Calls));
    let report = ask(agent, "hello").await.unwrap();
    assert_eq!((report.output(), report.steps), ("I do not know.", 1));
    let (_, messages) = asked(&creator, 1);
    assert!(messages[1].contains("wanted to call `clock`"), "{messages:?}");
    assert!(report.history().iter().all(|message| message.calls().is_empty()));
}

#[tokio::test]
async fn an_answer_that_replaces_tool_calls_has_none() {
    let creator = RecordedModel::new(Scripted::empty().call("clock", json!({})).text("noon"));
    let hook = Critic::new(Scripted::new([modify("nobody needs the time")]));
    let agent = clock(&creator).with_lifecycle(hook.judges(Judged::Calls));
    let report = ask(agent, "hello").await.unwrap();
    assert_eq!(report.output(), "nobody needs the time");
    assert_eq!(creator.requests().len(), 1);
    let history = report.history();
    assert_eq!(history.len(), 2, "{history:?}");
    assert!(history.iter().all(|message| message.calls().is_empty()));
}

#[tokio::test]
async fn a_reader_of_the_stream_sees_only_what_the_critic_let_pass() {
    let critic = Scripted::new([reject("no"), APPROVE.to_owned()]);
    let agent = Agent::builder("a")
        .model(Scripted::new(["the bad answer", "the good answer"]))
        .with_lifecycle(Critic::new(critic))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("hello");
    let mut read = String::new();
    while let Some(piece) = stream.next().await {
        read.push_str(&piece);
    }
    assert_eq!(read, "the good answer");
    drop(stream);
    agent.shutdown().await;
}

#[tokio::test]
async fn what_the_critic_costs_is_part_of_the_turn() {
    let usage = async |judged: bool| {
        let mut agent = Agent::builder("a").model(Scripted::new(["fine"]));
        if judged {
            agent = agent.with_lifecycle(Critic::new(Scripted::new([APPROVE])));
        }
        ask(agent, "hello").await.unwrap().usage
    };
    let (plain, judged) = (usage(false).await, usage(true).await);
    assert_eq!((plain.calls, judged.calls), (1, 2));
    assert!(judged.input > plain.input);
}

#[tokio::test]
async fn a_run_that_was_cut_off_anywhere_goes_on_without_asking_again() {
    let build = |creator: &RecordedModel, critic: &RecordedModel| {
        let hook = Critic::new(critic.clone());
        Agent::builder("a").model(creator.clone()).with_lifecycle(hook).build().unwrap()
    };
    let run = async |agent: Agent, log: MemoryStepLog| {
        agent.startup().await.unwrap();
        let report = agent.request("hello").steps(log).run().await.unwrap();
        agent.shutdown().await;
        report.output().to_owned()
    };
    // What was recorded is not asked for again, so the scripts begin where the record ends.
    let creator =
        |made| RecordedModel::new(Scripted::new(["one", "two", "three"].into_iter().skip(made)));
    let critic = |judged| {
        let verdicts = [reject("no"), reject("nor this"), APPROVE.to_owned()];
        RecordedModel::new(Scripted::new(verdicts.into_iter().skip(judged)))
    };
    let log = MemoryStepLog::new();
    assert_eq!(run(build(&creator(0), &critic(0)), log.clone()).await, "three");
    let keys = log.keys();
    for cut in 0..=keys.len() {
        let of = |is_critic: bool| {
            let is_it = |key: &&tenure_core::step::StepKey| {
                &*key.kind == "model" && key.name.contains("critic") == is_critic
            };
            keys[..cut].iter().filter(is_it).count()
        };
        let (made, judged) = (of(false), of(true));
        let (creator, critic) = (creator(made), critic(judged));
        let output = run(build(&creator, &critic), log.cut_after(cut)).await;
        assert_eq!(output, "three", "cut after {cut}");
        assert_eq!(
            (creator.requests().len(), critic.requests().len()),
            (3 - made, 3 - judged),
            "cut after {cut}"
        );
    }
}
