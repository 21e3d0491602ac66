//! What the model gets to read of what a person edited.

use crate::privacy::support::*;
use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::message::Message;
use tenure_core::model::ModelResponse;
use tenure_hooks::guard::Pii;
use tenure_hooks::people::Approval;

/// What the model reads when a person has put `edited` in the place of what it wrote.
async fn read(pii: Pii, written: Value, edited: Value) -> String {
    let notes = Notes::default();
    let made = calls([("pay", written)]);
    let agent = Agent::builder("clerk")
        .model(ByTurn(vec![made, ModelResponse::text("done")]))
        .with_lifecycle(pii)
        .with_lifecycle(Approval::new().tool("pay"))
        .tool(tool("pay", &notes, "paid"))
        .on_ask(move |_: &PendingAsk| Some(Answer::Edit(edited.clone())))
        .build()
        .expect("it works here");
    agent.startup().await.expect("it works here");
    agent.run("go").await.expect("it works here");
    let history = agent.history();
    agent.shutdown().await;
    assert_eq!(notes.all().len(), 1);
    let result = history.iter().find(|it| matches!(it, Message::Tool(_)));
    result.expect("the call was made").text().to_owned()
}

#[tokio::test]
async fn what_is_taken_out_does_not_come_back_by_the_notice_of_an_edit() {
    let edited = json!({ "to": "ann@example.org", "amount": 3 });
    for pii in [Pii::new(), Pii::new().output(false)] {
        let read = read(pii, json!({ "to": "bob", "amount": 3 }), edited.clone()).await;
        assert_eq!(read, "paid\n\n(A person changed the arguments: `to`.)");
    }
}

#[tokio::test]
async fn a_notice_names_what_the_model_wrote_and_nothing_else() {
    let edited = json!({ "ann@example.org": 1 });
    let added = read(Pii::new(), json!({}), edited.clone()).await;
    assert_eq!(added, "paid\n\n(A person changed the arguments.)");
    let removed = read(Pii::new(), json!({ "to": "bob", "amount": 3 }), edited).await;
    assert!(removed.ends_with("(A person changed the arguments: `amount`, `to`.)"), "{removed}");
}
