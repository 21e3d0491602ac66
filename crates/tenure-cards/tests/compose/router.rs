//! A model chooses.

use crate::compose::support::*;
use std::sync::Arc;
use tenure_cards::compose::{Composition, Member};
use tenure_core::agent::Agent;
use tenure_core::model::{Model, Usage};
use tenure_models::Scripted;

fn router<const N: usize>(agents: [&str; N]) -> Composition {
    Composition::Router { agents: names(agents) }
}

fn members(asked: &Asked) -> Vec<Member> {
    let described = |who: &str, about: &str| {
        let said = format!("{who} here");
        let model = model(who, asked, move |_, _| Ok(said.clone()));
        built(Agent::builder(who).model(model).description(about))
    };
    vec![described("cook", "Knows recipes"), described("driver", "Knows roads")]
}

async fn routed(asked: &Asked, answers: Vec<&str>) -> Stage {
    let answers: Vec<_> = answers.into_iter().map(str::to_owned).collect();
    let llm: Arc<dyn Model> =
        Arc::new(model("llm", asked, move |_, call| Ok(answers[call].clone())));
    stage_with(router(["cook", "driver"]), &members(asked), Some(llm), |builder| {
        builder.instruction("Be fair.")
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn the_chosen_agent_gets_the_request_and_its_answer_is_the_answer() {
    for choice in [
        r#"{"agent": "driver", "confidence": "high", "reasoning": "roads"}"#,
        "```json\n{\"agent\": \"driver\"}\n```",
        "driver",
    ] {
        let asked = Asked::default();
        let stage = routed(&asked, vec![choice]).await;
        assert_eq!(stage.answer("which way?").await, "driver here");
        assert_eq!(asked.who(), ["llm", "driver"]);
        assert_eq!(asked.of("driver"), ["which way?"]);
        let prompt = &asked.of("llm")[0];
        for part in ["- cook: Knows recipes", "- driver: Knows roads", "which way?"] {
            assert!(prompt.contains(part), "{part} is missing in {prompt}");
        }
        stage.over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_agent_needs_no_choice() {
    let asked = Asked::default();
    let stage = staged(router(["cook"]), &members(&asked)).await;
    assert_eq!(stage.answer("go").await, "cook here");
    assert_eq!(asked.who(), ["cook"]);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_cannot_be_used_is_corrected_once() {
    let asked = Asked::default();
    let stage = routed(&asked, vec!["dunno", r#"{"agent": "cook"}"#]).await;
    assert_eq!(stage.answer("go").await, "cook here");
    assert!(asked.of("llm")[1].contains("did not choose one of `cook`, `driver`"));
    stage.over().await;

    let stage = routed(&asked, vec!["dunno", r#"{"agent": "baker"}"#]).await;
    assert_eq!(
        stage.failure("go").await,
        "the model `scripted` was corrected once, and still chose the agent `baker`, which does \
         not exist; there are `cook`, `driver`"
    );
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_choice_cost_is_counted_with_the_rest() {
    use tenure_core::model::ModelResponse;
    let usage = |input| Usage::new(input, 1);
    let answer = |text: &str, input| ModelResponse::text(text).with_usage(usage(input));
    let llm: Arc<dyn Model> =
        Arc::new(Scripted::new([answer("?", 100), answer(r#"{"agent": "b"}"#, 200)]));
    let members = ["a", "b"]
        .map(|who| built(Agent::builder(who).model(Scripted::new([answer("done", 3000)]))));
    let stage = stage_with(router(["a", "b"]), &members, Some(llm), |builder| builder).await;
    let report = stage.agent.run("go").await.expect("it answers");
    assert_eq!((report.usage.input, report.usage.output, report.usage.calls), (3300, 3, 3));
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_router_without_a_model_says_so() {
    let asked = Asked::default();
    let stage = staged(router(["cook", "driver"]), &members(&asked)).await;
    let error = stage.failure("go").await;
    assert_eq!(error, "this agent needs a model to plan with; set `model` in its card");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_router_that_remembers_sees_what_was_said_and_not_whom_it_asked() {
    use tenure_core::message::Message;
    use tenure_core::model::ModelResponse;
    let asked = Asked::default();
    let seen = asked.clone();
    let llm: Arc<dyn Model> = Arc::new(Scripted::from_fn(move |request, _| {
        let said = request.messages.iter().map(Message::text).collect::<Vec<_>>();
        seen.add("llm", &said[..said.len() - 1].join("|"));
        assert!(request.messages.iter().all(|message| message.calls().is_empty()));
        Ok(ModelResponse::text("cook"))
    }));
    let composition = router(["cook", "driver"]);
    let stage = stage_with(composition, &members(&asked), Some(llm), |mut builder| {
        builder.config_mut().use_history = true;
        builder
    })
    .await;
    stage.answer("soup").await;
    stage.answer("bread").await;
    assert_eq!(asked.of("llm"), ["", "soup|cook here"]);
    stage.over().await;
}
