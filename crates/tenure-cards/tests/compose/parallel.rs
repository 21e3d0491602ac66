//! All at once.

use crate::compose::support::*;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::compose::{Composition, FanInRequest, Member};
use tenure_core::agent::Agent;
use tenure_models::{Scripted, Slow};

fn parallel(fan_out: Vec<Arc<str>>, fan_in: Option<&str>) -> Composition {
    Composition::Parallel { fan_out, fan_in: fan_in.map(name), request: FanInRequest::Included }
}

fn slow(who: &str, millis: u64) -> Member {
    let model = Slow::of(Scripted::new([who.to_owned()])).by(Duration::from_millis(millis));
    built(Agent::builder(who).model(model))
}

#[tokio::test(start_paused = true)]
async fn members_work_at_the_same_time_and_answers_keep_their_order() {
    let members: Vec<_> = (0..20).map(|n| slow(&format!("m{n}"), 1000 - n * 10)).collect();
    let order: Vec<Arc<str>> = (0..20).map(|n| format!("m{n}").into()).collect();
    let stage = staged(parallel(order, None), &members).await;
    let before = tokio::time::Instant::now();
    let answer = stage.answer("go").await;
    assert!(before.elapsed() < Duration::from_millis(1100), "all twenty at once");
    let expected: Vec<_> = (0..20)
        .map(|n| format!("<fastagent:response agent='m{n}'>\nm{n}\n</fastagent:response>"))
        .collect();
    assert_eq!(answer, expected.join("\n\n"));
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn fan_in_sees_the_request_and_every_answer() {
    let asked = Asked::default();
    let members =
        [saying("a", &asked, ["A"]), saying("b", &asked, ["B"]), saying("in", &asked, ["one"])];
    let stage = staged(parallel(names(["a", "b"]), Some("in")), &members).await;
    assert_eq!(stage.answer("why?").await, "one");
    let answers = "<fastagent:response agent='a'>\nA\n</fastagent:response>\n\n\
                   <fastagent:response agent='b'>\nB\n</fastagent:response>";
    assert_eq!(
        asked.of("in"),
        [format!(
            "The following request was sent to the agents:\n\n\
             <fastagent:request>\nwhy?\n</fastagent:request>\n\n{answers}"
        )]
    );
    stage.over().await;
    let composition = Composition::Parallel {
        fan_out: names(["a", "b"]),
        fan_in: Some(name("in")),
        request: FanInRequest::Left,
    };
    let stage = staged(composition, &members).await;
    stage.answer("why?").await;
    assert_eq!(asked.of("in")[1], answers);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_is_named_or_shown_to_fan_in() {
    let asked = Asked::default();
    let members = [
        saying("a", &asked, ["A"]),
        member("b", &asked, |_, _| Err("no paper".to_owned())),
        member("c", &asked, |_, _| Err("no ink".to_owned())),
        saying("in", &asked, ["made do"]),
    ];
    let stage = staged(parallel(names(["a", "b", "c"]), None), &members).await;
    assert_eq!(stage.failure("go").await, "agent `b` failed: no paper; agent `c` failed: no ink");
    stage.over().await;
    let stage = staged(parallel(names(["a", "b"]), Some("in")), &members).await;
    assert_eq!(stage.answer("go").await, "made do");
    assert!(asked.of("in")[0].contains("agent='b'>\nerror: no paper\n<"), "{:?}", asked.of("in"));
    stage.over().await;
}
