//! Who may write what.

use crate::variables::support::{Stage, state, variables};
use serde_json::json;
use tenure_flow::variables::{Computed, Config, Definition, Kind, Source};

async fn stage() -> Stage {
    Stage::new(variables(vec![
        state("count", Kind::Int, 0),
        state("note", Kind::Str, "begin"),
        Definition::new("fixed", Kind::Int, Source::Static(json!(1))),
        Definition::new("region", Kind::Str, Source::Config(Config::new("REGION"))),
        Definition::new("double", Kind::Int, Source::Computed(Computed::new("count * 2"))),
    ]))
    .await
}

#[tokio::test]
async fn states_are_written_with_their_type_and_undeclared_keys_are_scratch() {
    let stage = stage().await;
    stage.set("count", 3).unwrap();
    stage.set("scratch", json!({ "anything": [1, "x"] })).unwrap();
    assert_eq!((stage.get("count"), stage.get("double")), (json!(3), json!(6)));
    let error = stage.set("count", "three").unwrap_err();
    assert_eq!(error, "context variable `count`: \"three\" is not a whole number (int)");
    assert_eq!(stage.get("count"), json!(3));
    stage.set("note", json!(null)).unwrap();
}

#[tokio::test]
async fn what_comes_from_elsewhere_is_read_only_and_the_whole_patch_is_dropped() {
    let stage = stage().await;
    let platform = "is the platform's and";
    for (name, owned) in [
        ("fixed", "comes from `static` and is"),
        ("region", "comes from `config` and is"),
        ("double", "comes from `computed` and is"),
        ("app_id", platform),
        ("chat_id", platform),
        ("workflow_name", platform),
        ("user_id", platform),
    ] {
        let patch = [("note".to_owned(), json!("new")), (name.to_owned(), json!("other"))];
        let error = stage.chat.context_variables().update(patch).unwrap_err();
        assert_eq!(error.state_violation().map(|it| it.key.as_str()), Some(name));
        assert_eq!(
            error.to_string(),
            format!("context variable `{name}` {owned} read-only; nothing of this write was kept")
        );
        assert_eq!(stage.get("note"), json!("begin"), "{name}");
    }
}

#[tokio::test]
async fn handing_back_what_is_there_is_no_write() {
    let stage = stage().await;
    let mut all = stage.chat.variables();
    for key in tenure_core::chat::Chat::system_keys() {
        all.remove(*key);
    }
    all.insert("note".to_owned(), json!("new"));
    stage.chat.context_variables().update(all).unwrap();
    assert_eq!(stage.get("note"), json!("new"));
}
