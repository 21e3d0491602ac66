//! An instruction that is made anew for each model call.

use crate::context::stage::five_steps;
use crate::support::{hearing, made, refused};
use serde_json::json;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::ExecutionContext;
use tenure_core::hook::{self, Flow};
use tenure_core::model::ModelResponse;
use tenure_core::step::MemoryStepLog;
use tenure_hooks::context::{DynamicPrompt, PromptPlace};
use tenure_testkit::RecordedModel;

fn agent(prompt: DynamicPrompt) -> (AgentBuilder, RecordedModel) {
    let (agent, heard) = five_steps();
    (agent.instruction("Be kind.").with_lifecycle(prompt), heard)
}

fn keeping(agent: AgentBuilder) -> AgentBuilder {
    let keeps = hook::before_model(|_, request| {
        Box::pin(async move {
            request.persist();
            Ok(Flow::Continue)
        })
    });
    agent.with_lifecycle(hook::hook(keeps).named("keeps"))
}

async fn run(agent: Agent, turns: usize) {
    agent.startup().await.expect("it works here");
    for _ in 0..turns {
        agent.run("hello").await.expect("it works here");
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn it_is_there_once_at_each_of_five_steps_and_in_each_turn() {
    let prompt = || DynamicPrompt::new("Step {{ step }}: {{ input }}.").unwrap();
    for keeps in [false, true] {
        for (place, expected) in [
            (PromptPlace::Before, "Step N: hello.\n\nBe kind."),
            (PromptPlace::After, "Be kind.\n\nStep N: hello."),
            (PromptPlace::Instead, "Step N: hello."),
        ] {
            let (agent, heard) = agent(prompt().place(place));
            let agent = if keeps { keeping(agent) } else { agent };
            run(agent.build().unwrap(), 2).await;
            let heard = heard.instructions();
            assert_eq!(heard.len(), 10);
            for (at, instruction) in heard.iter().enumerate() {
                let step = (at % 5 + 1).to_string();
                assert_eq!(*instruction, expected.replace('N', &step), "{place:?} {keeps}");
            }
        }
    }
}

#[tokio::test]
async fn it_sees_the_time_the_user_and_the_tools() {
    let template = "{{ now.iso }}|{{ now.weekday }}|{{ user }}|{{ agent.name }}|{{ tools | join(',') }}\
                    |{{ state | length }}|{{ variables | length }}|{{ usage.total }}|{{ chars }}";
    let (agent, heard) = agent(DynamicPrompt::new(template).unwrap());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let context = ExecutionContext::unique().with_user_id("ada");
    agent.request("hello").context(context).run().await.unwrap();
    agent.shutdown().await;
    let first = heard.instructions().remove(0);
    let seen: Vec<_> = first.lines().next().unwrap().split('|').collect();
    assert!(seen[0].ends_with('Z') && seen[0].len() == 20, "{first}");
    assert!(seen[1].ends_with("day"), "{first}");
    assert_eq!(&seen[2..], ["ada", "a", "tick", "0", "0", "0", "13"], "{first}");
}

#[tokio::test]
async fn what_is_not_there_and_what_never_ends_fails_the_turn() {
    for (template, expected) in [
        ("{{ variables.nobody }}", "cannot be rendered"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}", "fuel"),
    ] {
        let (agent, heard) = agent(DynamicPrompt::new(template).unwrap());
        let agent = agent.build().unwrap();
        let error = agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(heard.requests().is_empty());
    }
}

#[tokio::test]
async fn a_template_that_says_nothing_changes_nothing() {
    let template = "{% if step > 2 %}Hurry.{% endif %}";
    let (agent, heard) = agent(DynamicPrompt::new(template).unwrap());
    run(agent.build().unwrap(), 1).await;
    let expected = ["Be kind.", "Be kind.", "Hurry.\n\nBe kind.", "Hurry.\n\nBe kind."];
    assert_eq!(heard.instructions()[..4], expected);
}

#[tokio::test]
async fn it_says_something_else_as_soon_as_what_it_reads_has_changed() {
    // One that reads nothing, one that reads what stays, and ones that read what changes.
    for (template, expected) in [
        ("Be quick.", ["Be quick."; 3]),
        ("{{ agent.name }} {{ now.year > 2000 }}", ["a True"; 3]),
        ("{{ state | length }}", ["1", "1", "1"]),
        ("{{ state.mood }}", ["good", "bad", "1"]),
        ("{{ input[:2] }}", ["on", "tw", "th"]),
        ("{{ user }}", ["ada", "bob", "ada"]),
        ("{{ user }} {{ chars }}", ["ada 11", "bob 11", "ada 13"]),
    ] {
        let heard = hearing(|_| ModelResponse::text("fine"));
        let prompt = DynamicPrompt::new(template).unwrap().place(PromptPlace::Instead);
        let forgets = hook::before_model(|_, request| {
            Box::pin(async move {
                request.instruction = Some("Be kind.".into());
                let keep = request.messages.len() - 1;
                request.messages.edit().drain(..keep);
                Ok(Flow::Continue)
            })
        });
        let forgets = hook::hook(forgets).named("forgets").outside("prompt");
        let builder = Agent::builder("a").model(heard.clone()).with_lifecycle(forgets);
        let agent = builder.with_lifecycle(prompt).build().unwrap();
        agent.startup().await.unwrap();
        for (input, mood, user) in [
            ("one", json!("good"), "ada"),
            ("two", json!("bad"), "bob"),
            ("three", json!(1), "ada"),
        ] {
            agent.set_state("mood", mood).unwrap();
            let context = ExecutionContext::unique().with_user_id(user);
            agent.request(input).context(context).run().await.unwrap();
        }
        agent.shutdown().await;
        assert_eq!(heard.instructions(), expected, "{template}");
    }
}

#[tokio::test]
async fn it_tells_the_time_as_it_is_at_each_call() {
    let (agent, heard) = agent(DynamicPrompt::new("{{ now.second }}").unwrap());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    agent.run("hello").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    agent.run("hello").await.unwrap();
    agent.shutdown().await;
    let heard = heard.instructions();
    assert_ne!(heard[0], heard[5]);
}

#[tokio::test]
async fn a_run_that_goes_on_has_said_the_same() {
    // The time differs at each attempt.
    let prompt = || DynamicPrompt::new("{{ now.iso }} {{ now.unix }} {{ step }}").unwrap();
    let log = MemoryStepLog::new();
    let (first, heard) = agent(prompt());
    let first = keeping(first).build().unwrap();
    first.startup().await.unwrap();
    first.request("hello").steps(log.clone()).run().await.unwrap();
    first.shutdown().await;
    let before = heard.instructions();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    for cut in 0..=log.keys().len() {
        let (agent, heard) = agent(prompt());
        let agent = keeping(agent).build().unwrap();
        agent.startup().await.unwrap();
        agent.request("hello").steps(log.cut_after(cut)).run().await.unwrap();
        agent.shutdown().await;
        let heard = heard.instructions();
        for instruction in &heard {
            assert_eq!(instruction.matches('Z').count(), 1, "cut {cut}: {instruction}");
        }
        if cut > 1 && heard.len() == before.len() {
            assert_eq!(heard[0], before[0], "cut {cut}");
        }
    }
}

#[test]
fn options_are_checked() {
    assert!(made("prompt", json!({ "template": "{{ now.date }}" })).is_ok());
    assert_eq!(refused("prompt", json!({})), "template");
    assert_eq!(refused("prompt", json!({ "template": "{{ nobody }}" })), "template");
    assert_eq!(refused("prompt", json!({ "template": "{{ now" })), "template");
    assert_eq!(refused("prompt", json!({ "template": "{% include '/etc/passwd' %}" })), "template");
    assert_eq!(refused("prompt", json!({ "template": "x", "place": "above" })), "place");
}
