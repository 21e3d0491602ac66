//! Input that is put in order.

use crate::input::support::with_hook;
use crate::support::{made, refused};
use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_core::drive::Input;
use tenure_hooks::input::Sanitise;
use tenure_models::Passthrough;
use tenure_testkit::Recorder;

async fn clean(with: Value, input: &str) -> String {
    let (agent, heard) = with_hook(made("sanitise", with).expect("it works here"));
    agent.scoped(async |agent| agent.run(input).await).await.expect("it works here");
    let requests = heard.requests();
    let last = requests.last().and_then(|request| request.messages.last());
    last.expect("the model was asked").text().to_owned()
}

#[tokio::test]
async fn characters_are_written_in_one_way() {
    assert_eq!(clean(json!({}), "cafe\u{301}").await, "caf\u{e9}");
    assert_eq!(clean(json!({}), "ﬁne ①").await, "ﬁne ①");
    assert_eq!(clean(json!({ "form": "nfkc" }), "ﬁne ①").await, "fine 1");
    assert_eq!(clean(json!({ "form": "as_is" }), "cafe\u{301}").await, "cafe\u{301}");
}

#[tokio::test]
async fn what_cannot_be_seen_goes_and_what_words_need_stays() {
    assert_eq!(
        clean(json!({}), "pay\u{202e}load\u{200b}\u{feff}\u{0}\u{1b}[2J").await,
        "payload[2J"
    );
    assert_eq!(clean(json!({}), "a\u{e0041}\u{e0042}b").await, "ab");
    // A family of emoji, and a word of Persian.
    assert_eq!(
        clean(json!({}), "👩\u{200d}👧 می\u{200c}خواهم").await,
        "👩\u{200d}👧 می\u{200c}خواهم"
    );
    assert_eq!(clean(json!({}), "in\u{200d}visible").await, "invisible");
    assert_eq!(clean(json!({}), "one\r\ntwo\rthree\tfour").await, "one\ntwo\nthree\tfour");
    let keep = json!({ "control": false, "invisible": false });
    assert_eq!(clean(keep, "a\u{200b}\u{7}b").await, "a\u{200b}\u{7}b");
}

#[tokio::test]
async fn blanks_tags_and_length_are_seen_to() {
    assert_eq!(clean(json!({}), "  two  blanks \n").await, "two  blanks");
    assert_eq!(clean(json!({ "trim": false }), " x ").await, " x ");
    let collapse = json!({ "collapse": true });
    assert_eq!(clean(collapse, " a \t b\n\n\n\n c ").await, "a b\n\nc");
    let html = json!({ "strip_html": true });
    assert_eq!(clean(html, "<p>Hi <b>you</b><script>bad()</script></p>").await, "Hi you");
    assert_eq!(clean(json!({ "max_chars": 3 }), "äöü€").await, "äöü");
}

#[tokio::test]
async fn what_matches_is_replaced_in_order() {
    let with = json!({ "replace": [
        { "matching": "(?i)acme", "with": "$1 the client" },
        { "matching": "client", "with": "customer" },
        { "matching": "!+" },
    ] });
    assert_eq!(clean(with, "ACME and acme!!!").await, "$1 the customer and $1 the customer");
}

#[tokio::test]
async fn what_others_said_earlier_is_put_in_order_too_and_a_change_is_announced() {
    let (bus, recorder) = Recorder::with_bus();
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .events(&bus)
        .with_lifecycle(Sanitise::new())
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.run("clean").await.unwrap();
    assert_eq!(recorder.count("input.sanitised"), 0);
    let input = Input::text("now").after(vec!["be\u{200b}fore".into()]);
    let report = agent.run(input).await.unwrap();
    assert_eq!(recorder.count("input.sanitised"), 1);
    assert!(report.history().iter().any(|message| message.text() == "before"));
    agent.shutdown().await;
}

#[test]
fn options_are_checked() {
    assert_eq!(refused("sanitise", json!({ "max_chars": 0 })), "max_chars");
    assert_eq!(refused("sanitise", json!({ "form": "nfd" })), "form");
    let wrong = json!({ "replace": [{ "matching": "ok" }, { "matching": "[" }] });
    assert_eq!(refused("sanitise", wrong), "replace[1].matching");
    assert!(Sanitise::new().replace("[", "").is_err());
}
