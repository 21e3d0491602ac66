//! Where values come from, when a chat starts.

use crate::variables::support::{of_folder, opened, state, variables};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_cards::card::Environ;
use tenure_flow::variables::{
    Config, Definition, File, FileFormat, Kind, Source, SourceKind, Variables,
};

fn config(name: &str, kind: Kind, change: impl FnOnce(&mut Config)) -> Definition {
    let mut config = Config::new(name.to_uppercase());
    change(&mut config);
    Definition::new(name, kind, Source::Config(config))
}

fn with(values: &[(&str, &str)], definitions: Vec<Definition>) -> Variables {
    variables(definitions).environ(Environ::of(values.iter().copied()))
}

#[test]
fn every_name_of_a_source_is_known_and_external_is_refused_by_name() {
    for (name, kind) in [
        ("config", SourceKind::Config),
        ("environment", SourceKind::Config),
        ("state", SourceKind::State),
        ("derived", SourceKind::State),
        ("runtime", SourceKind::State),
        ("computed", SourceKind::Computed),
        ("file", SourceKind::File),
        ("static", SourceKind::Static),
        ("data_reference", SourceKind::DataReference),
        ("database", SourceKind::DataReference),
        ("data_entity", SourceKind::DataEntity),
    ] {
        assert_eq!(SourceKind::parse(name), Some(kind), "{name}");
        assert!(SourceKind::names().any(|known| known == name), "{name}");
    }
    let Some(SourceKind::Refused(help)) = SourceKind::parse("external") else {
        panic!("external is known");
    };
    assert!(help.contains("lifecycle tool"), "{help}");
    assert!(SourceKind::names().all(|known| known != "external"));
    assert_eq!(SourceKind::parse("mongo"), None);
}

#[tokio::test]
async fn the_environment_is_read_as_the_declared_type() {
    let definitions = vec![
        config("flag", Kind::Bool, |_| {}),
        config("count", Kind::Int, |_| {}),
        config("ratio", Kind::Float, |_| {}),
        config("name", Kind::Str, |_| {}),
        config("tags", Kind::List, |_| {}),
        config("limits", Kind::Dict, |_| {}),
        config("fallback", Kind::Int, |it| it.default = Some(json!("7"))),
        config("nothing", Kind::Str, |_| {}),
    ];
    let values = opened(with(
        &[
            ("FLAG", "Yes"),
            ("COUNT", "42"),
            ("RATIO", "0.5"),
            ("NAME", "42"),
            ("TAGS", "a, b"),
            ("LIMITS", "{\"a\": 1}"),
        ],
        definitions,
    ));
    let values = values.await.expect("it opens");
    let expected = json!({
        "flag": true, "count": 42, "ratio": 0.5, "name": "42", "tags": ["a", "b"],
        "limits": { "a": 1 }, "fallback": 7, "nothing": null
    });
    assert_eq!(json!(values), expected);
}

#[tokio::test]
async fn a_required_variable_that_is_not_set_is_named_with_its_environment_variable() {
    let definitions = vec![
        config("api_key", Kind::Str, |it| it.required = true),
        config("port", Kind::Int, |_| {}),
    ];
    let error = opened(with(&[("PORT", "a-secret-word")], definitions)).await.unwrap_err();
    assert_eq!(
        error,
        "context variable `api_key`: the environment variable API_KEY is not set; set it, or give \
         the variable a default; context variable `port`: PORT is not a whole number (int)"
    );
}

#[test]
fn values_of_secret_variables_are_secrets() {
    let definitions = vec![
        config("api_key", Kind::Str, |_| {}),
        config("database_url", Kind::Str, |_| {}),
        config("region", Kind::Str, |_| {}),
    ];
    let variables = with(
        &[
            ("API_KEY", "sk-123456"),
            ("DATABASE_URL", "postgres://u:hunter22@host/db"),
            ("REGION", "eu-west"),
        ],
        definitions,
    );
    assert_eq!(variables.secrets(), ["sk-123456", "postgres://u:hunter22@host/db", "hunter22"]);
}

#[tokio::test]
async fn files_are_read_in_their_format_when_the_chat_starts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("menu.json", "\u{feff}{\"soup\": 3}");
    write("rules.yaml", "- a\n- {b: 2}\n");
    write("note.txt", "hello\n");
    write("port.txt", " 80\n");
    let file = |name: &str, kind, path: &str, format| {
        Definition::new(name, kind, Source::File(File::new(path, format)))
    };
    let mut missing = File::new("gone.json", FileFormat::Json);
    missing.default = Some(json!([]));
    let definitions = vec![
        file("menu", Kind::Dict, "menu.json", FileFormat::Json),
        file("rules", Kind::List, "rules.yaml", FileFormat::Yaml),
        file("note", Kind::Str, "note.txt", FileFormat::Text),
        file("port", Kind::Int, "port.txt", FileFormat::Text),
        Definition::new("gone", Kind::List, Source::File(missing)),
    ];
    let variables = Arc::new(of_folder(folder.path(), definitions).unwrap());
    let open = async || {
        let session = variables.open(crate::variables::support::keys(), BTreeMap::new()).await;
        session.expect("it opens").values()
    };
    assert_eq!(
        json!(open().await),
        json!({ "menu": { "soup": 3 }, "rules": ["a", { "b": 2 }], "note": "hello\n", "port": 80,
                "gone": [] })
    );
    write("note.txt", "changed");
    assert_eq!(open().await["note"], json!("changed"));
}

#[tokio::test]
async fn a_file_that_is_gone_broken_or_outside_stops_the_chat_by_name() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(outer.path().join("secret.json"), "1").unwrap();
    std::fs::write(folder.join("bad.json"), "{").unwrap();
    std::fs::write(folder.join("bad.yaml"), "a: [1\n").unwrap();
    std::fs::write(folder.join("latin.txt"), [0xE4]).unwrap();
    std::fs::write(folder.join("huge.txt"), "x".repeat(1024 * 1024 + 1)).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(outer.path().join("secret.json"), folder.join("link.json")).unwrap();
    for (path, format, said) in [
        ("gone.json", FileFormat::Json, "the file `gone.json` is not there"),
        ("../secret.json", FileFormat::Json, "`../secret.json` is outside of the project"),
        #[cfg(unix)]
        ("link.json", FileFormat::Json, "is a link that leads out of the project"),
        ("bad.json", FileFormat::Json, "the file `bad.json` is no JSON: EOF"),
        ("bad.yaml", FileFormat::Yaml, "the file `bad.yaml` is no YAML: line "),
        ("latin.txt", FileFormat::Text, "the file `latin.txt` is not utf-8"),
        ("huge.txt", FileFormat::Text, "has 1048577 bytes"),
    ] {
        let source = Source::File(File::new(path, format));
        let definitions = vec![Definition::new("it", Kind::Any, source)];
        let error = opened(of_folder(&folder, definitions).unwrap()).await.unwrap_err();
        assert!(error.starts_with("context variable `it`: "), "{error}");
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn overviews_are_there_if_chats_are_to_know_them_and_nobody_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let concept = root.join("concept.md");
    std::fs::write(&concept, "A shop.").unwrap();
    let make = |aware: bool, environ: Environ| {
        let variables = of_folder(&root, Vec::new()).unwrap().environ(environ);
        variables.overviews(aware, Some(concept.clone()), None)
    };
    let none = opened(make(false, Environ::empty())).await.unwrap();
    assert_eq!(json!(none), json!({}));
    let no = opened(make(false, Environ::of([("CONTEXT_AWARE", "false")]))).await.unwrap();
    assert_eq!(json!(no), json!({}));
    for aware in
        [make(true, Environ::empty()), make(false, Environ::of([("CONTEXT_AWARE", "true")]))]
    {
        let stage = crate::variables::support::Stage::new(aware).await;
        assert_eq!(stage.get("concept_overview"), json!("A shop."));
        assert_eq!(stage.get("schema_overview"), json!(null));
        let error = stage.set("concept_overview", "no").unwrap_err();
        assert!(error.contains("`concept_overview` is the platform's and read-only"), "{error}");
        stage.set("schema_overview", "scratch, for there is no such file").unwrap();
    }
}

#[tokio::test]
async fn a_chat_can_be_given_states_and_scratch_and_nothing_else() {
    let fixed = Definition::new("fixed", Kind::Int, Source::Static(json!(1)));
    let variables = Arc::new(variables(vec![state("count", Kind::Int, 0), fixed]));
    let open = async |name: &str, value: serde_json::Value| {
        let given = BTreeMap::from([(name.to_owned(), value)]);
        let session = variables.open(crate::variables::support::keys(), given).await;
        session.map(|session| session.values()).map_err(|error| error.to_string())
    };
    assert_eq!(json!(open("count", json!("5")).await.unwrap()), json!({ "count": 5, "fixed": 1 }));
    let scratch = open("note", json!("x")).await.unwrap();
    assert_eq!(json!(scratch), json!({ "count": 0, "fixed": 1, "note": "x" }));
    assert_eq!(
        open("fixed", json!(2)).await.unwrap_err(),
        "context variable `fixed` cannot be given to a chat: it comes from static"
    );
    assert_eq!(
        open("chat_id", json!("x")).await.unwrap_err(),
        "context variable `chat_id` cannot be given to a chat: it comes from the platform"
    );
    let error = open("count", json!([])).await.unwrap_err();
    assert!(error.ends_with("[] is not a whole number (int)"), "{error}");
}

#[test]
fn what_is_kept_with_a_chat_is_what_is_its_own() {
    let mut passing = tenure_flow::variables::State::new(1);
    passing.persist = false;
    let variables = variables(vec![
        state("count", Kind::Int, 0),
        Definition::new("passing", Kind::Int, Source::State(passing)),
        Definition::new("fixed", Kind::Int, Source::Static(json!(1))),
        config("api_key", Kind::Str, |_| {}),
    ]);
    let all = ["count", "passing", "fixed", "api_key", "scratch", "chat_id"];
    let all = all.map(|name| (name.to_owned(), json!(1))).into_iter().collect();
    let kept = variables.persisted(&all);
    assert_eq!(kept.keys().map(String::as_str).collect::<Vec<_>>(), ["count", "scratch"]);
}
