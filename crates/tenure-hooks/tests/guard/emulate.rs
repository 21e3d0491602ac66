//! Tools whose results a model makes up.

use crate::guard::support::*;
use crate::support::refused;
use serde_json::json;
use std::time::Duration;
use tenure_core::message::ToolStatus::{Denied, Error as Failed, Ok as Done};
use tenure_core::model::ModelErrorKind;
use tenure_core::step::MemoryStepLog;
use tenure_hooks::guard::{EmulateTools, Permissions};
use tenure_models::{Failing, Hanging, Scripted};
use tenure_testkit::Recorder;

fn replies() -> serde_json::Value {
    json!([{ "call": "search", "with": { "query": "rain" } }, "end"])
}

#[tokio::test]
async fn a_model_makes_up_the_result_and_the_event_says_so() {
    let seen = Seen::default();
    let (bus, recorder) = Recorder::with_bus();
    let stand_in = Scripted::from_fn(|request, _| {
        let asked = request.messages.last().map(|last| last.text().to_owned()).unwrap_or_default();
        assert!(asked.contains("\"rain\"") && asked.contains("Does something"), "{asked}");
        assert!(request.instruction.as_deref().is_some_and(|it| it.contains("stand in")));
        Ok(tenure_core::model::ModelResponse::text("made up"))
    });
    let builder =
        scripted(&seen, replies()).with_lifecycle(EmulateTools::new(stand_in)).events(&bus);
    let turn = run(builder).await;
    assert_eq!(results(&turn), [(Done, "made up".to_owned())]);
    assert_eq!((seen.count(), recorder.count("tool.emulated")), (0, 1));
}

#[tokio::test]
async fn an_emulator_that_fails_never_has_the_tool_called() {
    let seen = Seen::default();
    let failing = EmulateTools::new(Failing::new(ModelErrorKind::Overloaded));
    let turn = run(scripted(&seen, replies()).with_lifecycle(failing)).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Failed], 0));

    let silent = EmulateTools::new(Scripted::new([""]));
    let turn = run(scripted(&seen, replies()).with_lifecycle(silent)).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Failed], 0));

    let panics = EmulateTools::new(Scripted::empty().panics("oh"));
    let turn = run(scripted(&seen, replies()).with_lifecycle(panics)).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0));
}

#[tokio::test(start_paused = true)]
async fn an_emulator_that_hangs_is_given_up_and_the_call_denied() {
    let seen = Seen::default();
    let hangs = EmulateTools::new(Hanging::new()).limit(Duration::from_secs(3));
    let turn = run(scripted(&seen, replies()).with_lifecycle(hangs)).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0));
}

#[tokio::test]
async fn what_is_not_permitted_is_not_made_up() {
    let seen = Seen::default();
    let stand_in = EmulateTools::new(Scripted::empty());
    let builder = scripted(&seen, replies())
        .with_lifecycle(stand_in)
        .with_lifecycle(Permissions::new().allow("shell"));
    assert_eq!(statuses(&run(builder).await), [Denied]);
}

#[tokio::test]
async fn a_resumed_run_is_told_the_same() {
    let seen = Seen::default();
    let agent = |text: &'static str| {
        scripted(&seen, replies()).with_lifecycle(EmulateTools::new(Scripted::new([text])))
    };
    let log = MemoryStepLog::new();
    recorded(agent("first"), &log).await.unwrap();
    let died = died_after(&log, "model", "emulate");
    let turn = recorded(agent("second"), &died).await;
    assert_eq!(results(&turn), [(Done, "first".to_owned())]);
}

#[test]
fn options_are_checked() {
    let field = |with| refused("emulate_tools", with);
    assert_eq!(field(json!({})), "model");
    assert_eq!(field(json!({ "model": "nobody" })), "model");
    assert_eq!(field(json!({ "model": "passthrough", "prompt": " " })), "prompt");
    assert_eq!(field(json!({ "model": "passthrough", "limit": "5" })), "limit");
}
