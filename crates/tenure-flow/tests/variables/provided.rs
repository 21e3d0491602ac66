//! What the platform says of a project, under the names that published workflows know it by.

use crate::variables::support::{keys, opened};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::Environ;
use tenure_flow::variables::{
    DataEntity, DataReference, Database as _, Definition, DescribedSchema, Kind, Provided, Source,
    Sqlite, Variables,
};

async fn shop(folder: &Path) -> Sqlite {
    let shop = Sqlite::new(folder.join("shop.sqlite"));
    for (collection, document) in [
        ("Orders", json!({ "_id": "x", "enterprise_id": "app-1", "total": 1.5, "lines": [] })),
        ("Orders", json!({ "other": 1 })),
        ("Users", json!({ "name": "Ada", "age": 36, "is_admin": true, "to": {}, "at": null })),
    ] {
        let document = document.as_object().cloned().expect("an object");
        shop.insert(collection, &document).await.expect("it is written");
    }
    shop
}

fn made(shop: &Sqlite, definitions: Vec<Definition>) -> Variables {
    let here = std::env::current_dir().expect("there is one");
    let variables = Variables::new(definitions, Vec::new(), &here, &here).expect("they are good");
    variables.environ(Environ::empty()).database("shop", Arc::new(shop.clone()))
}

const OVERVIEW: &str = "DATABASE: shop\nTOTAL COLLECTIONS: 2\n\nORDERS [app-specific]:\n  Fields:\n    \
                        - enterprise_id: str\n    - total: float\n    - lines: list\n\nUSERS:\n  \
                        Fields:\n    - name: str\n    - age: int\n    - is_admin: bool\n    - to: dict\n    \
                        - at: NoneType\n";

#[tokio::test]
async fn a_database_is_described_if_the_project_or_the_environment_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = shop(folder.path()).await;
    let all = || Provided::definitions().collect::<Vec<_>>();
    let off = opened(made(&shop, all())).await.expect("it opens");
    assert_eq!(
        json!(off),
        json!({ "enterprise_id": "app-1", "concept_overview": null, "schema_overview": null,
                "database_schema_available": false, "database_schema_db": null,
                "collections_first_docs_full": null })
    );
    let included = DescribedSchema { is_included: true, database: Some("shop".to_owned()) };
    let environ = Environ::of([("CONTEXT_INCLUDE_SCHEMA", "true"), ("CONTEXT_SCHEMA_DB", "shop")]);
    for variables in [
        made(&shop, all()).described(included.clone()),
        made(&shop, all()).environ(environ),
        made(&shop, all()).environ(Environ::of([("CONTEXT_INCLUDE_SCHEMA", "1")])),
    ] {
        let values = opened(variables).await.expect("it opens");
        assert_eq!(values["schema_overview"], json!(OVERVIEW));
        assert_eq!(values["database_schema_available"], json!(true));
        assert_eq!(values["database_schema_db"], json!("shop"));
        let first = &values["collections_first_docs_full"];
        assert_eq!(first["Orders"], json!({ "enterprise_id": "app-1", "total": 1.5, "lines": [] }));
        assert_eq!(first["Users"]["name"], json!("Ada"));
    }
    // Tools find it though no file mentions it.
    let values = opened(made(&shop, Vec::new()).described(included)).await.expect("it opens");
    assert_eq!(values["schema_overview"], json!(OVERVIEW));
    assert_eq!(values.get("enterprise_id"), None);
}

#[tokio::test]
async fn a_long_description_is_cut_and_a_missing_database_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = shop(folder.path()).await;
    let said = |database: &'static str, length: &'static str| {
        Environ::of([
            ("CONTEXT_INCLUDE_SCHEMA", "true"),
            ("CONTEXT_SCHEMA_DB", database),
            ("CONTEXT_SCHEMA_TRUNCATE_CHARS", length),
        ])
    };
    let values =
        opened(made(&shop, Vec::new()).environ(said("shop", "14"))).await.expect("it opens");
    let left = OVERVIEW.chars().count() - 14;
    let cut = format!("DATABASE: shop... [truncated {left} chars]");
    assert_eq!(values["schema_overview"], json!(cut));
    let error = opened(made(&shop, Vec::new()).environ(said("gone", "14"))).await.unwrap_err();
    assert!(error.contains("`schema_overview` needs the database `gone`"), "{error}");
}

#[tokio::test]
async fn a_workflows_own_variable_goes_before_what_is_provided() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = shop(folder.path()).await;
    std::fs::write(folder.path().join("concept.md"), "The project's.").expect("there is room");
    let mut own = DataReference::new("shop", "Users");
    own.query_template = json!({ "name": "Ada" }).as_object().cloned().expect("an object");
    own.fields = vec!["name".to_owned()];
    let own = Definition::new("concept_overview", Kind::Str, Source::DataReference(own));
    let concept = Some(folder.path().join("concept.md"));
    let variables = made(&shop, vec![own]).overviews(true, concept, None);
    assert_eq!(opened(variables).await.expect("it opens")["concept_overview"], json!("Ada"));
}

#[tokio::test]
async fn documents_are_found_by_the_older_name_of_the_app() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = shop(folder.path()).await;
    let mut total = DataReference::new("shop", "Orders");
    let query = json!({ "enterprise_id": "{{runtime.enterprise_id}}" });
    total.query_template = query.as_object().cloned().expect("an object");
    total.fields = vec!["total".to_owned()];
    let mut order = DataEntity::new("shop", "Orders");
    order.search_by = "enterprise_id".to_owned();
    let definitions = vec![
        Definition::new("total", Kind::Float, Source::DataReference(total)),
        Definition::new("order", Kind::Json, Source::DataEntity(order)),
    ];
    let session = Arc::new(made(&shop, definitions)).open(keys(), BTreeMap::new()).await;
    let values = session.expect("it opens").values();
    assert_eq!(values["total"], json!(1.5));
    assert_eq!(values["order"]["total"], json!(1.5));
}

#[tokio::test]
async fn one_field_of_a_document_may_be_the_whole_list_or_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = Sqlite::new(folder.path().join("shop.sqlite"));
    for (endpoints, blueprint) in [(json!(["/a", "/b"]), json!({ "x": 1 })), (json!([]), json!(2))]
    {
        let document = json!({ "Endpoints": endpoints, "Blueprint": blueprint, "Title": "t" });
        let document = document.as_object().cloned().expect("an object");
        shop.insert("Concepts", &document).await.expect("it is written");
    }
    let read = async |kind: Kind, field: &str, collection: &str, default: Value| {
        let mut reference = DataReference::new("shop", collection);
        let query = json!({ "Title": "t" });
        reference.query_template = query.as_object().cloned().expect("an object");
        reference.fields = vec![field.to_owned()];
        reference.default = Some(default);
        let definition = Definition::new("it", kind, Source::DataReference(reference));
        opened(made(&shop, vec![definition])).await.expect("it opens")["it"].clone()
    };
    assert_eq!(read(Kind::List, "Endpoints", "Concepts", json!([])).await, json!(["/a", "/b"]));
    assert_eq!(read(Kind::List, "Title", "Concepts", json!([])).await, json!(["t", "t"]));
    assert_eq!(read(Kind::Dict, "Blueprint", "Concepts", json!({})).await, json!({ "x": 1 }));
    assert_eq!(read(Kind::Dict, "Title", "Concepts", json!({})).await, json!({ "Title": "t" }));
    assert_eq!(read(Kind::List, "Title", "Nothing", json!(["d"])).await, json!(["d"]));
}
