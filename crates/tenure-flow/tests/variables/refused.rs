//! What is wrong with declarations is said before anything runs.

use crate::variables::support::{problems, state};
use serde_json::{Map, Value, json};
use tenure_flow::variables::{
    Computed, Config, DataEntity, DataReference, Definition, Exposure, File, FileFormat, Kind,
    Pattern, PersistTo, Source, State, Transition, Trigger, check,
};

fn computed(name: &str, computation: &str, inputs: &[&str]) -> Definition {
    let mut computed = Computed::new(computation);
    computed.inputs = inputs.iter().map(|it| (*it).to_owned()).collect();
    Definition::new(name, Kind::Any, Source::Computed(computed))
}

fn says(agent: &str) -> Trigger {
    let matches = Pattern::Equals("next".to_owned());
    Trigger::AgentText { agent: agent.to_owned(), matches, ui_hidden: false }
}

#[test]
fn names_and_types_are_checked() {
    let found = problems(vec![
        state("chat_id", Kind::Str, "x"),
        state("9lives", Kind::Int, 0),
        state("count", Kind::Int, "many"),
        state("count", Kind::Int, 0),
        Definition::new("fixed", Kind::List, Source::Static(json!({}))),
        Definition::new("key", Kind::Str, Source::Config(Config::new(" "))),
    ]);
    assert_eq!(
        found,
        [
            "context variable `chat_id`: `chat_id` is set by the platform; leave it out: it is \
             always there",
            "context variable `9lives`: `9lives` cannot be a variable's name; write letters, \
             digits and underscores, and no digit first",
            "context variable `count`: `count` is declared twice; leave one of them out",
            "context variable `count`: its default is wrong: \"many\" is not a whole number \
             (int); give it a default of its type",
            "context variable `fixed`: {} is not a list; give it a value of its type",
            "context variable `key`: it has no env_var; say which variable of the environment it is",
        ]
    );
}

#[test]
fn a_circle_of_computed_variables_is_found_and_named_once() {
    let found = problems(vec![
        computed("a", "b + 1", &[]),
        computed("b", "${c} + 1", &["c"]),
        computed("c", "a", &[]),
        computed("leads_there", "a", &[]),
        computed("own", "own + 1", &[]),
    ]);
    assert_eq!(
        found,
        [
            "context variable `a`: it needs itself: `a` needs `b` needs `c` needs `a`; compute one \
             of them from something else",
            "context variable `own`: it needs itself: `own` needs `own`; compute one of them from \
             something else",
        ]
    );
}

#[test]
fn computations_are_expressions_over_declared_variables() {
    let found = problems(vec![
        state("price", Kind::Float, 1.0),
        computed("a", "prise * 2", &[]),
        computed("b", "price * count", &["price"]),
        computed("c", "price *", &[]),
        computed("d", "totals.py:sum_up", &["price"]),
        computed("e", " ", &[]),
        computed("f", "price ~ chat_id", &[]),
    ]);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(found[0].ends_with("`prise`, which is not declared; did you mean `price`?"));
    assert!(found[1].ends_with("which is not among its inputs; add `count` to the inputs"));
    assert!(found[2].contains("the computation `price *` cannot be read"), "{}", found[2]);
    assert!(found[3].contains("`totals.py:sum_up` is a function; a computation is an expression"));
    assert!(found[4].contains("the computation is empty"));
}

#[test]
fn triggers_set_what_the_variable_can_be() {
    let triggered = |kind, default: Value, transition| {
        let mut state = State::new(default);
        state.triggers = vec![transition];
        vec![Definition::new("it", kind, Source::State(state))]
    };
    assert_eq!(problems(triggered(Kind::Bool, json!(false), Transition::new(says("a")))).len(), 0);
    let found = problems(triggered(Kind::Str, json!("x"), Transition::new(says("a"))));
    assert!(found[0].contains("a message sets it to true, but it is declared as str"), "{found:?}");
    let to = Transition::between(None, json!(3), says("a"));
    let found = problems(triggered(Kind::Str, json!("x"), to));
    assert!(found[0].contains("a trigger sets it to what it cannot be: 3 is not a text"));
}

#[test]
fn databases_are_checked_as_far_as_they_are_declared() {
    let reference = |kind, query: Value, fields: &[&str]| {
        let mut it = DataReference::new("shop", "orders");
        it.query_template = query.as_object().cloned().unwrap_or_else(Map::new);
        it.fields = fields.iter().map(|it| (*it).to_owned()).collect();
        Definition::new("it", kind, Source::DataReference(it))
    };
    let found = |definition| problems(vec![state("region", Kind::Str, "eu"), definition]);
    assert!(found(reference(Kind::Dict, json!({ "r": "{{region}}" }), &[])).is_empty());
    for (definition, said) in [
        (reference(Kind::Str, json!({}), &["a", "b"]), "declared as str, and reads several"),
        (reference(Kind::Dict, json!({ "$where": "1" }), &[]), "the operator `$where`"),
        (reference(Kind::Dict, json!({ "a": "{{runtime.tenant}}" }), &[]), "`runtime.tenant`"),
        (reference(Kind::Dict, json!({ "a": "{{later}}" }), &[]), "mentions `later`"),
    ] {
        let found = found(definition);
        assert!(found[0].contains(said), "{found:?}");
    }
    let mut entity = DataEntity::new("shop", "");
    entity.search_by = String::new();
    let entity = Definition::new("e", Kind::Str, Source::DataEntity(entity));
    let found = problems(vec![entity]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("it has no collection") && found[1].contains("it has no search_by"));
    assert!(found[2].contains("declared as str, but is a document"));
    let mut sum = Computed::new("1 + 1");
    let mut to = PersistTo::new("shop", "sums");
    to.search_by = "order".to_owned();
    sum.persist_to = Some(to);
    let found = problems(vec![Definition::new("sum", Kind::Int, Source::Computed(sum))]);
    assert!(found[0].contains("its document is searched by `order`"), "{found:?}");
}

#[test]
fn only_utf_8_files_and_declared_exposures_are_good() {
    let mut file = File::new("a.txt", FileFormat::Text);
    file.encoding = Some("latin-1".to_owned());
    let definitions = vec![Definition::new("note", Kind::Str, Source::File(file))];
    let exposures = vec![Exposure::new("writer", vec!["notes".to_owned()])];
    let found: Vec<_> = check(&definitions, &exposures);
    assert_eq!(found[0].field, Some("source.encoding"));
    assert_eq!(found[1].message, "agent `writer` gets `notes`, which is not declared");
    assert_eq!(found[1].help, "did you mean `note`?");
}
