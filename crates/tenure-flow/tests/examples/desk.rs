//! The desk: handoffs by variables, and a person.

use crate::examples::support::{folder, loaded, messages};
use async_trait::async_trait;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_flow::{ChatReport, ChatStatus, Workflow};
use tenure_testkit::Recorder;

/// Answers with these, one after the other, and keeps what it was asked.
#[derive(Clone, Default)]
struct Customer {
    says: Arc<Mutex<Vec<&'static str>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Asker for Customer {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.asked.lock().expect("nobody panics").push(ask.ask.prompt.to_string());
        let mut says = self.says.lock().expect("nobody panics");
        assert!(!says.is_empty(), "asked once too often: {}", ask.ask.prompt);
        Some(Answer::Respond(says.remove(0).to_owned()))
    }
}

async fn desk(says: &[&'static str]) -> (ChatReport, Vec<String>) {
    let (bus, recorder) = Recorder::with_bus();
    let customer = Customer { says: Arc::new(Mutex::new(says.to_vec())), ..Customer::default() };
    let workflow = Workflow::builder(loaded(&folder("support_desk"))).events(&bus);
    let workflow = workflow.on_ask(customer.clone()).build();
    let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    let flow = workflow.open().await.unwrap_or_else(|error| panic!("{error}"));
    let report = flow.chat().user("user_xyz").run().await;
    workflow.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
    let asked = customer.asked.lock().expect("nobody panics").clone();
    (report, asked)
}

#[tokio::test]
async fn a_question_about_money_goes_to_billing() {
    let (report, asked) = desk(&["Where is my invoice?", "No, thank you."]).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let agents: Vec<_> = report.turn_summaries.iter().map(|it| &*it.agent).collect();
    assert_eq!(agents, ["Triage", "Billing", "Triage"]);
    assert_eq!(report.variables["topic_is_billing"], json!(true));
    assert_eq!(report.variables["ticket"], json!({ "state": "closed", "answers": 1 }));
    assert_eq!(
        asked,
        [
            "Hello! What can we do for you?",
            "Billing: Your invoice: number 2041, 12.50 EUR, paid. Is there anything else?",
        ]
    );
}

#[tokio::test]
async fn any_other_question_goes_to_the_technicians() {
    let (report, asked) = desk(&["It does not start.", "No, that helped."]).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let agents: Vec<_> = report.turn_summaries.iter().map(|it| &*it.agent).collect();
    assert_eq!(agents, ["Triage", "Technical", "Triage"]);
    assert_eq!(report.variables["topic_is_billing"], json!(false));
    assert_eq!(report.variables["ticket"], json!({ "state": "closed", "answers": 0 }));
    assert_eq!(asked.len(), 2);
}
