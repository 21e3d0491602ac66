//! One after the other.

use crate::compose::support::*;
use tenure_cards::compose::{ChainMemory, Composition};

fn chain<const N: usize>(sequence: [&str; N], memory: ChainMemory) -> Composition {
    Composition::Chain { sequence: names(sequence), memory }
}

#[tokio::test(start_paused = true)]
async fn each_gets_what_the_one_before_it_answered() {
    let asked = Asked::default();
    let members =
        ["a", "b", "c"].map(|who| member(who, &asked, move |said, _| Ok(format!("{said}{who}"))));
    let stage = staged(chain(["b", "a", "b", "c"], ChainMemory::Last), &members).await;
    assert_eq!(stage.answer("x").await, "xbabc");
    assert_eq!(asked.who(), ["b", "a", "b", "c"]);
    assert_eq!(stage.answer("y").await, "ybabc", "a turn begins anew");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_cumulative_chain_shows_the_request_and_all_answers() {
    let asked = Asked::default();
    let members = ["a", "b"].map(|who| member(who, &asked, move |_, _| Ok(who.to_uppercase())));
    let stage = staged(chain(["a", "b"], ChainMemory::Cumulative), &members).await;
    let answer = stage.answer("why?").await;
    assert_eq!(
        asked.of("b"),
        ["<fastagent:request>\nwhy?\n</fastagent:request>\n\n\
          <fastagent:response agent='a'>\nA\n</fastagent:response>"]
    );
    assert_eq!(
        answer,
        "<fastagent:response agent='a'>\nA\n</fastagent:response>\n\n\
         <fastagent:response agent='b'>\nB\n</fastagent:response>"
    );
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_ends_the_chain_and_is_named() {
    let asked = Asked::default();
    let members = [
        saying("a", &asked, ["fine"]),
        member("b", &asked, |_, _| Err("no paper".to_owned())),
        saying("c", &asked, ["never"]),
    ];
    let stage = staged(chain(["a", "b", "c"], ChainMemory::Last), &members).await;
    assert_eq!(stage.failure("go").await, "agent `b` (2 of 3 in the chain) failed: no paper");
    assert_eq!(asked.who(), ["a", "b"]);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_long_chain_is_not_cut_short() {
    let asked = Asked::default();
    let one = [member("a", &asked, |said, _| Ok(format!("{said}.")))];
    let composition =
        Composition::Chain { sequence: vec![name("a"); 60], memory: ChainMemory::Last };
    let stage = staged(composition, &one).await;
    assert_eq!(stage.answer("").await, ".".repeat(60));
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_with_history_remembers_earlier_turns_and_one_without_does_not() {
    use tenure_core::agent::Agent;
    use tenure_core::model::ModelResponse;
    use tenure_models::Scripted;
    let counting = || {
        Scripted::from_fn(|request, _| Ok(ModelResponse::text(request.messages.len().to_string())))
    };
    let remembers = built(Agent::builder("remembers").model(counting()));
    let forgets = built(Agent::builder("forgets").model(counting()).without_history());
    for (who, answers) in [("remembers", ["1", "3"]), ("forgets", ["1", "1"])] {
        let members = [remembers.clone(), forgets.clone()];
        let stage = staged(chain([who], ChainMemory::Last), &members).await;
        assert_eq!([stage.answer("x").await, stage.answer("y").await], answers, "{who}");
        stage.over().await;
    }
}
