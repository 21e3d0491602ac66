//! Variables that follow from others.

use crate::variables::support::{Stage, opened, state, variables};
use serde_json::json;
use tenure_flow::variables::{Computed, Definition, Kind, Source};

fn computed(name: &str, kind: Kind, computation: &str) -> Definition {
    Definition::new(name, kind, Source::Computed(Computed::new(computation)))
}

#[tokio::test]
async fn a_chain_is_computed_in_the_order_of_need_whatever_the_order_of_the_file() {
    let stage = Stage::new(variables(vec![
        computed("label", Kind::Str, "'total ' ~ total ~ ' for ' ~ user_id"),
        computed("total", Kind::Float, "${net} + ${tax}"),
        computed("tax", Kind::Float, "net * rate"),
        computed("net", Kind::Float, "lines | sum"),
        state("lines", Kind::List, json!([10, 20])),
        state("rate", Kind::Float, 0.5),
    ]))
    .await;
    assert_eq!(stage.get("total"), json!(45.0));
    assert_eq!(stage.get("label"), json!("total 45.0 for ada"));
    stage.set("rate", 0).unwrap();
    assert_eq!((stage.get("tax"), stage.get("total")), (json!(0), json!(30)));
}

#[tokio::test]
async fn what_cannot_be_computed_stops_the_start_and_refuses_the_write() {
    let ratio = computed("ratio", Kind::Float, "total / count");
    let definitions = |count: i64| {
        vec![state("total", Kind::Float, 6), state("count", Kind::Any, count), ratio.clone()]
    };
    let stage = Stage::new(variables(definitions(2))).await;
    assert_eq!(stage.get("ratio"), json!(3.0));
    let patch = [("total".to_owned(), json!(8)), ("count".to_owned(), json!("none"))];
    let error = stage.chat.context_variables().update(patch).unwrap_err().to_string();
    assert!(error.starts_with("context variable `ratio` cannot be computed: "), "{error}");
    assert_eq!((stage.get("total"), stage.get("count")), (json!(6), json!(2)));

    let strict = vec![
        state("order", Kind::Dict, json!({})),
        computed("city", Kind::Str, "order.address.city"),
    ];
    let error = opened(variables(strict)).await.unwrap_err();
    assert!(error.starts_with("context variable `city` cannot be computed: "), "{error}");
}

#[tokio::test]
async fn a_result_of_another_type_is_refused() {
    let mut counted = Computed::new("items | length");
    counted.output_type = Some(Kind::Int);
    let definitions = vec![
        state("items", Kind::List, json!([1, 2])),
        Definition::new("counted", Kind::Any, Source::Computed(counted)),
        computed("text", Kind::Str, "items | length"),
    ];
    let error = opened(variables(definitions)).await.unwrap_err();
    assert_eq!(error, "context variable `text` cannot be computed: 2 is not a text (str)");
}
