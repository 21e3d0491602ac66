//! Variables in a database: a real one, in a file.

use crate::variables::support::{Stage, keys, sets, state};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::Environ;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::hook;
use tenure_core::model::{ModelError, ModelErrorKind, ModelResponse};
use tenure_flow::route::RoundRobin;
use tenure_flow::variables::{
    Computed, DataEntity, DataReference, Database, Definition, Document, EntityField, Exposure,
    Index, Kind, PersistTo, Query, Refresh, Source, Sqlite, Variables, WriteStrategy,
};
use tenure_flow::{ChatStatus, Flow};
use tenure_models::Scripted;

fn document(value: Value) -> Document {
    value.as_object().cloned().expect("it is an object")
}

fn shop(folder: &Path) -> Sqlite {
    Sqlite::new(folder.join("shop.sqlite"))
}

fn made(definitions: Vec<Definition>, exposures: Vec<Exposure>, shop: &Sqlite) -> Variables {
    let here = std::env::current_dir().expect("there is one");
    let variables = Variables::new(definitions, exposures, &here, &here).expect("they are good");
    variables.environ(Environ::empty()).database("shop", Arc::new(shop.clone()))
}

fn reference(
    name: &str,
    kind: Kind,
    refresh: Refresh,
    change: impl FnOnce(&mut DataReference),
) -> Definition {
    let mut it = DataReference::new("shop", "orders");
    it.refresh = refresh;
    change(&mut it);
    Definition::new(name, kind, Source::DataReference(it))
}

fn query(value: Value) -> Map<String, Value> {
    document(value)
}

#[tokio::test]
async fn a_database_finds_inserts_updates_and_puts_documents() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let all = Query::new();
    assert!(shop.find("or'd\"ers", &all, 9).await.unwrap().is_empty());
    for id in 1..=3 {
        let order = json!({ "id": id, "paid": id > 1, "to": { "city": "Bern" }, "no\"te": "a'b" });
        shop.insert("or'd\"ers", &document(order)).await.unwrap();
    }
    let found = async |query: Query| {
        let found = shop.find("or'd\"ers", &query, 9).await.unwrap();
        found.iter().map(|it| it["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(Query::new()).await, [1, 2, 3]);
    assert_eq!(found(Query::new().with("paid", true)).await, [2, 3]);
    assert_eq!(found(Query::new().with("paid", true).with("id", 3)).await, [3]);
    assert_eq!(found(Query::new().with("to.city", "Bern").with("no\"te", "a'b")).await, [1, 2, 3]);
    assert_eq!(found(Query::new().with("id", "1")).await, [0i64; 0]);
    assert_eq!(found(Query::new().with("gone", Value::Null).with("id", 2)).await, [2]);
    assert_eq!(shop.find("or'd\"ers", &all, 2).await.unwrap().len(), 2);

    let fields = document(json!({ "paid": null, "to.city": "Chur" }));
    let changed = shop.update("or'd\"ers", &Query::new().with("id", 3), &fields).await.unwrap();
    assert_eq!(changed, 1);
    let third = shop.find("or'd\"ers", &Query::new().with("id", 3), 1).await.unwrap();
    assert_eq!((&third[0]["paid"], &third[0]["to"]["city"]), (&json!(null), &json!("Chur")));

    let by_id = Query::new().with("id", 9);
    for total in [1, 2] {
        let order = document(json!({ "id": 9, "total": total }));
        shop.put("or'd\"ers", &by_id, &order).await.unwrap();
    }
    let ninth = shop.find("or'd\"ers", &by_id, 9).await.unwrap();
    assert_eq!(json!(ninth), json!([{ "id": 9, "total": 2 }]));
}

#[tokio::test]
async fn a_unique_index_refuses_the_second_and_bad_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let index = Index::new(vec!["id".to_owned()], true);
    for _ in 0..2 {
        shop.index("orders", &index).await.unwrap();
    }
    let order = document(json!({ "id": 1 }));
    shop.insert("orders", &order).await.unwrap();
    let error = shop.insert("orders", &order).await.unwrap_err().to_string();
    assert!(error.starts_with("database `shop.sqlite`: UNIQUE constraint failed"), "{error}");
    for name in ["", "sqlite_x", "SQLite_y"] {
        let error = shop.insert(name, &order).await.unwrap_err().to_string();
        assert_eq!(error, format!("`{name}` cannot be a collection's name"));
    }
    let gone = Sqlite::new(folder.path().join("gone/shop.sqlite"));
    let error = gone.insert("orders", &order).await.unwrap_err().to_string();
    assert!(error.contains("unable to open database file"), "{error}");
}

#[tokio::test]
async fn a_reference_is_what_its_type_says_of_what_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    for (id, app) in [(1, "app-1"), (2, "app-1"), (3, "other")] {
        let order = json!({ "id": id, "app_id": app, "note": "n", "region": "eu" });
        shop.insert("orders", &document(order)).await.unwrap();
    }
    let of_app = |it: &mut DataReference| {
        it.query_template =
            query(json!({ "app_id": "{{runtime.app_id}}", "region": "{{region}}" }));
    };
    let stage = Stage::new(made(
        vec![
            reference("all", Kind::List, Refresh::Once, of_app),
            reference("ids", Kind::List, Refresh::Once, |it| {
                of_app(it);
                it.fields = vec!["id".to_owned()];
            }),
            reference("first", Kind::Dict, Refresh::Once, |it| {
                it.fields = vec!["id".to_owned(), "note".to_owned()];
            }),
            reference("id", Kind::Int, Refresh::Once, |it| it.fields = vec!["id".to_owned()]),
            reference("after", Kind::Dict, Refresh::Once, |it| {
                it.query_template = query(json!({ "id": "{{id}}" }));
                it.fields = vec!["note".to_owned()];
            }),
            reference("none", Kind::Str, Refresh::Once, |it| {
                it.query_template = query(json!({ "app_id": "nobody" }));
                it.fields = vec!["note".to_owned()];
                it.default = Some(json!("nothing"));
            }),
            state("region", Kind::Str, "eu"),
        ],
        Vec::new(),
        &shop,
    ))
    .await;
    assert_eq!(stage.get("all").as_array().map(Vec::len), Some(2));
    assert_eq!(stage.get("ids"), json!([1, 2]));
    assert_eq!(stage.get("first"), json!({ "id": 1, "note": "n" }));
    assert_eq!((stage.get("id"), stage.get("after")), (json!(1), json!({ "note": "n" })));
    assert_eq!(stage.get("none"), json!("nothing"));
    let error = stage.set("first", json!({})).unwrap_err();
    assert!(error.contains("`first` comes from `data_reference` and is read-only"), "{error}");
}

#[tokio::test]
async fn references_are_read_again_once_per_phase_and_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let order = |total: i64| document(json!({ "app_id": "app-1", "total": total }));
    let of_app = Query::new().with("app_id", "app-1");
    shop.put("orders", &of_app, &order(1)).await.unwrap();
    let total = |name: &str, refresh| {
        reference(name, Kind::Int, refresh, |it| it.fields = vec!["total".to_owned()])
    };
    let double = Computed::new("phase * 2");
    let mut stage = Stage::new(made(
        vec![
            total("once", Refresh::Once),
            total("phase", Refresh::PerPhase),
            total("demand", Refresh::OnDemand),
            Definition::new("double", Kind::Int, Source::Computed(double)),
        ],
        vec![Exposure::new("b", vec!["demand".to_owned()])],
        &shop,
    ))
    .await;
    let values = |stage: &Stage| ["once", "phase", "demand", "double"].map(|it| stage.get(it));
    assert_eq!(values(&stage), [json!(1), json!(1), json!(null), json!(2)]);

    shop.put("orders", &of_app, &order(2)).await.unwrap();
    stage.session.before_turn(&stage.chat, "a").await.unwrap();
    assert_eq!(values(&stage), [json!(1), json!(2), json!(null), json!(4)]);
    let changes: Vec<_> = stage.changes().iter().map(|it| it["cause"].clone()).collect();
    assert_eq!(changes, [json!("data_reference"), json!("computed")]);

    // The same agent again: its phase goes on.
    shop.put("orders", &of_app, &order(3)).await.unwrap();
    stage.session.before_turn(&stage.chat, "a").await.unwrap();
    assert_eq!(values(&stage), [json!(1), json!(2), json!(null), json!(4)]);

    stage.session.before_turn(&stage.chat, "b").await.unwrap();
    assert_eq!(values(&stage), [json!(1), json!(3), json!(3), json!(6)]);
    shop.put("orders", &of_app, &order(4)).await.unwrap();
    stage.session.before_turn(&stage.chat, "b").await.unwrap();
    assert_eq!(values(&stage), [json!(1), json!(3), json!(4), json!(6)]);

    stage.session.refresh(&stage.chat, "once").await.unwrap();
    assert_eq!(stage.get("once"), json!(4));
    let error = stage.session.refresh(&stage.chat, "double").await.unwrap_err().to_string();
    assert_eq!(error, "context variable `double` is no data_reference; only those are read again");
}

fn entity(name: &str, collection: &str, write: WriteStrategy) -> Definition {
    let mut it = DataEntity::new("shop", collection);
    it.write = write;
    Definition::new(name, Kind::Dict, Source::DataEntity(it))
}

async fn stored(shop: &Sqlite, collection: &str) -> Value {
    json!(shop.find(collection, &Query::new(), 9).await.expect("it can be read"))
}

#[tokio::test]
async fn documents_are_written_at_once_with_the_phase_or_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let stage = Stage::new(made(
        vec![
            entity("now", "now", WriteStrategy::Immediate),
            entity("phase", "phase", WriteStrategy::OnPhaseTransition),
            entity("end", "end", WriteStrategy::OnWorkflowEnd),
        ],
        Vec::new(),
        &shop,
    ))
    .await;
    let all = async || {
        let mut all = Vec::new();
        for collection in ["now", "phase", "end"] {
            let documents = stored(&shop, collection).await;
            all.push(documents[0]["n"].as_i64().unwrap_or_default());
            assert!(documents.as_array().unwrap().len() < 2, "{documents}");
        }
        all
    };
    let set = |n: i64| {
        for name in ["now", "phase", "end"] {
            stage.set(name, json!({ "n": n })).unwrap();
        }
    };
    let (chat, session) = (&stage.chat, &stage.session);
    session.before_turn(chat, "a").await.unwrap();
    set(1);
    session.after_turn(chat).await.unwrap();
    assert_eq!(all().await, [1, 0, 0]);
    session.before_turn(chat, "a").await.unwrap();
    set(2);
    session.after_turn(chat).await.unwrap();
    assert_eq!(all().await, [2, 0, 0]);
    session.before_turn(chat, "b").await.unwrap();
    assert_eq!(all().await, [2, 2, 0]);
    set(3);
    session.finish(chat).await.unwrap();
    assert_eq!(all().await, [3, 3, 3]);
    assert_eq!(stored(&shop, "now").await, json!([{ "n": 3, "chat_id": "chat-1" }]));
}

#[tokio::test]
async fn a_document_is_there_again_in_the_next_chat_and_has_the_form_of_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let mut cart = DataEntity::new("shop", "carts");
    cart.search_by = "user_id".to_owned();
    cart.schema = vec![
        EntityField::new("total", Kind::Int, true),
        EntityField::new("note", Kind::Str, false),
    ];
    cart.indexes = vec![Index::new(vec!["user_id".to_owned()], true)];
    let cart = Definition::new("cart", Kind::Dict, Source::DataEntity(cart));
    let variables = Arc::new(made(vec![cart], Vec::new(), &shop));
    let stage = Stage::of(variables.clone()).await;
    assert_eq!(stage.get("cart"), json!(null));
    for (value, said) in [
        (json!({}), "context variable `cart`: its field `total` is required, and not there"),
        (
            json!({ "total": "x" }),
            "context variable `cart`: field `total`: \"x\" is not a whole number (int)",
        ),
        (
            json!({ "total": 1, "note": 2 }),
            "context variable `cart`: field `note`: 2 is not a text (str)",
        ),
        (json!([]), "context variable `cart`: [] is not an object (dict)"),
    ] {
        assert_eq!(stage.set("cart", value).unwrap_err(), said);
    }
    stage.set("cart", json!({ "total": 3 })).unwrap();
    stage.session.after_turn(&stage.chat).await.unwrap();
    let next = Stage::of(variables).await;
    assert_eq!(next.get("cart"), json!({ "total": 3, "user_id": "ada" }));
}

#[tokio::test]
async fn a_document_that_is_searched_by_a_field_of_its_own_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let mut order = DataEntity::new("shop", "orders");
    order.search_by = "number".to_owned();
    let order = Definition::new("order", Kind::Dict, Source::DataEntity(order));
    let stage = Stage::new(made(vec![order], Vec::new(), &shop)).await;
    stage.set("order", json!({ "total": 1 })).unwrap();
    let error = stage.session.after_turn(&stage.chat).await.unwrap_err().to_string();
    assert!(error.contains("searched by `number`, and this one has none"), "{error}");
    for total in [1, 2] {
        stage.set("order", json!({ "number": 7, "total": total })).unwrap();
        stage.session.after_turn(&stage.chat).await.unwrap();
    }
    assert_eq!(stored(&shop, "orders").await, json!([{ "number": 7, "total": 2 }]));
}

#[tokio::test]
async fn a_computed_value_is_written_to_its_field_and_the_rest_of_the_document_stays() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let other = json!({ "app_id": "app-1", "kept": true });
    shop.insert("stats", &document(other)).await.unwrap();
    let mut double = Computed::new("n * 2");
    let mut to = PersistTo::new("shop", "stats");
    to.search_by = "app_id".to_owned();
    double.persist_to = Some(to);
    let double = Definition::new("double", Kind::Int, Source::Computed(double));
    let stage = Stage::new(made(vec![state("n", Kind::Int, 1), double], Vec::new(), &shop)).await;
    stage.session.before_turn(&stage.chat, "a").await.unwrap();
    stage.set("n", 4).unwrap();
    stage.session.after_turn(&stage.chat).await.unwrap();
    assert_eq!(
        stored(&shop, "stats").await,
        json!([{ "app_id": "app-1", "double": 8, "kept": true }])
    );
}

#[tokio::test]
async fn a_database_that_nobody_gave_stops_the_chat_by_name() {
    let here = std::env::current_dir().unwrap();
    let definitions = vec![entity("cart", "carts", WriteStrategy::Immediate)];
    let variables = Variables::new(definitions, Vec::new(), &here, &here).unwrap();
    let missing = BTreeMap::from([("shop", "cart")]);
    assert_eq!(variables.missing_databases(), missing);
    let error = Arc::new(variables).open(keys(), BTreeMap::new()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "context variable `cart` needs the database `shop`, which there is not; declare it in \
         tenure.toml: [databases.shop] with its path"
    );
}

fn writer(name: &str, hook: impl hook::AgentLifecycle) -> Blueprint {
    let model = Scripted::from_fn(|_, _| Ok(tenure_core::model::ModelResponse::text("done")));
    Agent::builder(name).model(model).with_lifecycle(hook).blueprint().expect("it can be built")
}

#[tokio::test]
async fn a_chat_writes_its_documents_however_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let definitions = vec![entity("cart", "carts", WriteStrategy::OnWorkflowEnd)];
    let variables = Arc::new(made(definitions, Vec::new(), &shop));
    let fails = hook::before_agent(|_, _| Box::pin(async { Err(hook::HookError::new("no more")) }));
    let flow = Flow::builder("shop")
        .agent(writer("a", sets("cart", json!({ "n": 1 }))))
        .agent(writer("b", fails))
        .router(RoundRobin)
        .variables(variables)
        .build()
        .unwrap();
    let report = flow.chat().id("chat-9").message("go").run().await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert_eq!(stored(&shop, "carts").await, json!([{ "n": 1, "chat_id": "chat-9" }]));
}

#[tokio::test]
async fn a_chat_that_cannot_write_fails_and_says_which_variable() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    shop.index("carts", &Index::new(vec!["n".to_owned()], true)).await.unwrap();
    shop.insert("carts", &document(json!({ "n": 1 }))).await.unwrap();
    let definitions = vec![entity("cart", "carts", WriteStrategy::Immediate)];
    let flow = Flow::builder("shop")
        .agent(writer("a", sets("cart", json!({ "n": 1 }))))
        .max_turns(3)
        .variables(Arc::new(made(definitions, Vec::new(), &shop)))
        .build()
        .unwrap();
    let report = flow.run("go").await;
    assert_eq!((report.status, report.turns), (ChatStatus::Failed, 1));
    let error = report.error.expect("it failed").to_string();
    assert!(error.contains("context variable `cart` cannot be written: database"), "{error}");
}

#[tokio::test]
async fn a_turn_that_failed_is_told_by_its_own_failure_if_nothing_could_be_written_either() {
    let folder = tempfile::tempdir().unwrap();
    let shop = shop(folder.path());
    let mut order = DataEntity::new("shop", "orders");
    order.search_by = "number".to_owned();
    let order = Definition::new("order", Kind::Dict, Source::DataEntity(order));
    let variables = Arc::new(made(vec![order], Vec::new(), &shop));
    // It has no number to be found by, so it cannot be written.
    let writes = || sets("order", json!({ "total": 1 }));
    for (fails, part) in [(true, "the key is wrong"), (false, "cannot be written")] {
        let model = Scripted::from_fn(move |_, _| match fails {
            true => Err(ModelError::new(ModelErrorKind::Auth, "the key is wrong")),
            false => Ok(ModelResponse::text("well")),
        });
        let agent = Agent::builder("a").model(model).with_lifecycle(writes());
        let agent = agent.blueprint().expect("it can be built");
        let flow = Flow::builder("shop").agent(agent).router(RoundRobin);
        let report = flow.variables(variables.clone()).build().unwrap().run("go").await;
        assert_eq!((report.status, report.turns), (ChatStatus::Failed, 1));
        let error = report.error.map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains(part), "{error}");
    }
}
