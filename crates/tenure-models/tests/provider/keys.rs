//! Keys: where they come from, and where they do not go.

use crate::provider::server::{Server, events, whole};
use crate::provider::support::{KEY, Mode, ask_with};
use std::path::PathBuf;
use tenure_models::provider::{
    ApiKey, Authority, KeySource, ProviderConfig, ProviderEntry, ProviderErrorKind as Kind,
    Providers, Wire,
};

const HELLO: [&str; 2] =
    [r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"];

fn entry(url: &str, by: Authority) -> ProviderEntry {
    let mut entry = ProviderEntry::default();
    entry.base_url = Some((url.to_owned(), by));
    entry
}

fn with(name: &str, entry: ProviderEntry) -> Providers {
    let mut config = ProviderConfig::default();
    config.providers.insert(name.to_owned(), entry);
    Providers::with_env(config, |name| name.ends_with("_API_KEY").then(|| KEY.to_owned()))
}

#[test]
fn without_a_key_only_the_internal_models_work_and_the_message_says_so() {
    let providers = Providers::with_env(ProviderConfig::default(), |_| None);
    for (spec, variable) in [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("sonnet", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("groq.llama", "GROQ_API_KEY"),
    ] {
        let error = providers.model(spec).unwrap_err();
        assert_eq!(error.kind(), Kind::NoKey, "{spec}");
        let said = error.to_string();
        assert!(said.contains(variable) && said.contains(spec), "{said}");
        assert!(said.contains("passthrough, playback, slow, silent, script:<file>"), "{said}");
        assert!(error.help().contains("api_key_file") && error.help().contains(variable));
    }
    // An empty variable is as good as none.
    let empty = Providers::with_env(ProviderConfig::default(), |_| Some(" ".to_owned()));
    assert_eq!(empty.resolve("groq.x").map(|target| target.has_key), Ok(false));
    assert!(providers.model("ollama.llama3").is_ok());
    assert!(providers.model("generic.llama3").is_ok());
}

#[test]
fn a_key_comes_from_a_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("good"), format!("{KEY}\n")).unwrap();
    std::fs::write(at("empty"), " \n").unwrap();
    std::fs::write(at("two"), "one two").unwrap();
    std::fs::write(at("large"), "x".repeat(100_000)).unwrap();
    let model = |path: PathBuf| {
        let mut entry = ProviderEntry::default();
        entry.key = Some(KeySource::File(path));
        let mut config = ProviderConfig::default();
        config.providers.insert("openai".to_owned(), entry);
        Providers::with_env(config, |_| None).model("gpt-4o")
    };
    assert!(model(at("good")).is_ok());
    for (name, what) in [
        ("empty", "is empty"),
        ("two", "no header can carry"),
        ("large", "too large"),
        ("missing", "cannot be read"),
        (".", "not a plain file"),
    ] {
        let error = model(at(name)).unwrap_err();
        assert_eq!(error.kind(), Kind::KeyFile, "{name}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.to_string().contains("openai"), "{error}");
    }
}

#[test]
fn a_users_key_does_not_go_where_only_a_project_sends_it() {
    for url in [
        "https://evil.example/v1",
        "http://127.0.0.1:1/v1",
        "https://api.openai.com:1/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.example/v1",
    ] {
        let providers = with("openai", entry(url, Authority::Project));
        let error = providers.model("gpt-4o").unwrap_err();
        assert_eq!(error.kind(), Kind::HostNotAllowed, "{url}");
        assert!(error.to_string().contains("project"), "{error}");
        let host = providers.resolve("gpt-4o").unwrap().host;
        assert!(error.to_string().contains(&host), "{error}");
        let line = format!("[providers.openai] allow_hosts = [\"{host}\"]");
        assert!(error.help().contains(&line), "{}", error.help());
        // Nor a key of the user's that came with a card.
        let given = providers.model_with_key("gpt-4o", ApiKey::new(KEY), Authority::User);
        assert_eq!(given.unwrap_err().kind(), Kind::HostNotAllowed, "{url}");
    }
    // The provider's own host is no other.
    assert!(
        with("openai", entry("https://api.openai.com/v1", Authority::Project))
            .model("gpt-4o")
            .is_ok()
    );
}

#[test]
fn a_user_may_choose_or_allow_a_host() {
    assert!(
        with("openai", entry("http://proxy.example/v1", Authority::User)).model("gpt-4o").is_ok()
    );
    let allowed = |url: &str, host: &str| {
        let mut entry = entry(url, Authority::Project);
        entry.allow_hosts = vec![host.to_owned()];
        with("openai", entry).model("gpt-4o").map(drop).map_err(|error| error.kind())
    };
    assert_eq!(allowed("https://proxy.example/v1", "proxy.example"), Ok(()));
    assert_eq!(allowed("https://a.proxy.example/v1", "*.proxy.example"), Ok(()));
    assert_eq!(allowed("http://127.0.0.1:9/v1", "127.0.0.1"), Ok(()));
    assert_eq!(allowed("https://other.example/v1", "proxy.example"), Err(Kind::HostNotAllowed));
    // What others can read on the way is for the user alone to choose.
    assert_eq!(allowed("http://proxy.example/v1", "proxy.example"), Err(Kind::HostNotAllowed));
}

#[test]
fn a_key_goes_to_no_other_server_than_to_one_that_its_user_chose() {
    let goes = |config: ProviderEntry, url: &str| {
        with("openai", config).check_key_target("openai", url).map_err(|error| error.kind())
    };
    let plain = || ProviderEntry::default();
    let allows = |host: &str| {
        let mut entry = plain();
        entry.allow_hosts = vec![host.to_owned()];
        entry
    };
    assert_eq!(goes(plain(), "https://api.openai.com/mcp?x=1"), Ok(()));
    assert_eq!(goes(allows("tools.example"), "https://tools.example/mcp"), Ok(()));
    assert_eq!(goes(allows("127.0.0.1"), "http://127.0.0.1:9/mcp"), Ok(()));
    let chosen = entry("https://mine.example/v1", Authority::User);
    assert_eq!(goes(chosen, "https://mine.example/mcp"), Ok(()));
    for (config, url) in [
        (plain(), "https://tools.example/mcp"),
        (plain(), "http://127.0.0.1:9/mcp"),
        (plain(), "http://api.openai.com/mcp"),
        (plain(), "https://api.openai.com.tools.example/mcp"),
        (entry("https://theirs.example/v1", Authority::Project), "https://theirs.example/mcp"),
        // Others can read it on the way, whoever allows it.
        (allows("tools.example"), "http://tools.example/mcp"),
        (entry("http://mine.example/v1", Authority::User), "http://mine.example/mcp"),
    ] {
        assert_eq!(goes(config, url), Err(Kind::HostNotAllowed), "{url}");
    }
}

#[test]
fn a_users_address_wins_over_a_projects() {
    let mut config = ProviderConfig::default();
    config.providers.insert("openai".to_owned(), entry("https://evil.example", Authority::Project));
    let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| "https://mine.example".to_owned());
    let target = Providers::with_env(config, env).resolve("gpt-4o").unwrap();
    assert_eq!((target.host.as_str(), target.url_by), ("mine.example", Authority::User));
}

#[tokio::test]
async fn a_server_that_a_project_names_is_called_without_the_users_key() {
    let server = Server::one(events(&HELLO)).await;
    let url = format!("{}/v1", server.url);
    let mut own = entry(&url, Authority::Project);
    own.wire = Some(Wire::OpenAi);
    for (name, entry) in [("generic", entry(&url, Authority::Project)), ("mine", own)] {
        let model = with(name, entry).model(&format!("{name}.model")).unwrap();
        assert_eq!(ask_with(model, Mode::Streamed, |_| {}).await.response().content.text(), "hi");
    }
    // A key of the project's own goes where the project says.
    let providers = with("generic", entry(&url, Authority::Project));
    let project = ApiKey::new("project-key");
    let model = providers.model_with_key("generic.m", project, Authority::Project).unwrap();
    ask_with(model, Mode::Streamed, |_| {}).await.response();
    // And the user's where the user says.
    let model = with("generic", entry(&url, Authority::User)).model("generic.m").unwrap();
    ask_with(model, Mode::Streamed, |_| {}).await.response();
    let keys: Vec<_> =
        server.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    let expected =
        [None, None, Some("Bearer project-key".to_owned()), Some(format!("Bearer {KEY}"))];
    assert_eq!(keys, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_refused_call_without_a_key_says_that_none_was_sent_and_why() {
    let refusal = r#"{"error":{"message":"who are you"}}"#;
    let server = Server::one(vec![whole(401, &[("content-type", "application/json")], refusal)]);
    let server = server.await;
    let mut own = entry(&format!("{}/v1", server.url), Authority::Project);
    own.wire = Some(Wire::OpenAi);
    let withheld = with("lab", own.clone()).model("lab.m").unwrap();
    let host = withheld.target().host.clone();
    let asked = ask_with(withheld, Mode::Whole, |_| {}).await;
    let said = asked.error().to_string();
    assert!(said.contains("lab.m: the server wants a key (401): who are you; no key"), "{said}");
    assert!(said.contains("no key was sent: the one of LAB_API_KEY is kept"), "{said}");
    let line = format!("[providers.lab] allow_hosts = [\"{host}\"]");
    assert!(said.contains("the project wants") && said.contains(&line), "{said}");

    let mut config = ProviderConfig::default();
    config.providers.insert("lab".to_owned(), own);
    let unset = Providers::with_env(config, |_| None).model("lab.m").unwrap();
    let asked = ask_with(unset, Mode::Whole, |_| {}).await;
    let said = asked.error().to_string();
    assert!(said.ends_with("; no key was sent: LAB_API_KEY is not set"), "{said}");
    assert!(!said.contains("not accepted"), "{said}");

    // One that was sent was not accepted.
    let mut own = entry(&format!("{}/v1", server.url), Authority::User);
    own.wire = Some(Wire::OpenAi);
    let asked = ask_with(with("lab", own).model("lab.m").unwrap(), Mode::Whole, |_| {}).await;
    let said = asked.error().to_string();
    assert!(said.ends_with("the key was not accepted (401): who are you"), "{said}");
    server.stop().await;
}

#[test]
fn the_help_for_a_host_by_http_says_at_once_all_that_is_needed() {
    let project = entry("http://llm.example:8080/v1", Authority::Project);
    let error = with("openai", project).model("gpt-4o").unwrap_err();
    let said = error.to_string();
    assert!(said.contains("not allowed") && said.contains("by http"), "{said}");
    let help = error.help();
    assert!(help.contains("`allow_hosts` is not enough for http"), "{help}");
    assert!(help.contains("[providers.openai] allow_hosts = [\"llm.example:8080\"]"), "{help}");
    let base_url = "[providers.openai] base_url = \"http://llm.example:8080/v1\"";
    assert!(help.contains(base_url), "{help}");
    // And that is indeed all.
    let own = entry("http://llm.example:8080/v1", Authority::User);
    assert!(with("openai", own).model("gpt-4o").is_ok());
}

#[test]
fn an_address_in_a_variable_that_is_none_is_told_by_the_variables_name() {
    let env = |name: &str| match name {
        "OPENAI_BASE_URL" => Some("nonsense".to_owned()),
        _ => None,
    };
    let providers = Providers::with_env(ProviderConfig::default(), env);
    let error = providers.resolve("gpt-4o").unwrap_err();
    assert_eq!(error.kind(), Kind::BadVariable);
    assert_eq!(
        error.to_string(),
        "the address in the variable OPENAI_BASE_URL begins with neither https:// nor http://"
    );
    assert!(error.help().contains("set OPENAI_BASE_URL"), "{}", error.help());
    // It is still among the providers, with what is wrong.
    let all = providers.known_providers();
    let openai = all.iter().find(|it| it.name == "openai").unwrap();
    assert_eq!(openai.problem.as_ref(), Some(&error));
    assert!(all.iter().filter(|it| it.name != "openai").all(|it| it.problem.is_none()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_what_to_do() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    for (model, variable, help) in [
        ("ollama.llama3.2", "OLLAMA_HOST", "is Ollama running"),
        ("generic.foo", "GENERIC_BASE_URL", "GENERIC_BASE_URL, or [providers.generic] base_url"),
    ] {
        let env = move |name: &str| (name == variable).then(|| format!("http://{at}"));
        let providers = Providers::with_env(ProviderConfig::default(), env);
        let asked = ask_with(providers.model(model).unwrap(), Mode::Whole, |_| {}).await;
        let said = asked.error().to_string();
        let expected = format!("{model}: nothing answers at {at}: connection refused; ");
        assert!(said.contains(&expected), "{said}");
        assert!(said.contains(help) && said.contains(variable), "{said}");
        assert!(!said.contains("client error") && !said.contains("os error"), "{said}");
    }
}

#[tokio::test]
async fn a_host_that_is_not_known_is_named() {
    let own = entry("http://no-such-host.invalid:81/v1", Authority::User);
    let model = with("generic", own).model("generic.m").unwrap();
    let asked = ask_with(model, Mode::Whole, |_| {}).await;
    let said = asked.error().to_string();
    assert!(said.contains("no-such-host.invalid"), "{said}");
    assert!(!said.contains("client error") && !said.contains("error sending"), "{said}");
}

#[test]
fn a_provider_with_a_key_of_its_users_is_not_called_without_it() {
    let mut own = entry("https://models.example/v1", Authority::Project);
    own.wire = Some(Wire::OpenAi);
    own.key = Some(KeySource::Env("MODELS_API_KEY".to_owned()));
    let error = with("mine", own).model("mine.model").unwrap_err();
    assert_eq!(error.kind(), Kind::HostNotAllowed);
}

#[test]
fn nothing_shows_a_key() {
    let providers = with("openai", entry("https://mine.example", Authority::User));
    let model = providers.model("gpt-4o").unwrap();
    let shown = format!("{providers:?} {model:?} {:?} {:?}", model.target(), ApiKey::new(KEY));
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("[redacted]"));
}

#[test]
fn a_key_that_came_with_a_card_must_be_one() {
    let providers = Providers::with_env(ProviderConfig::default(), |_| None);
    for bad in ["", "two\nlines"] {
        let error = providers.model_with_key("gpt-4o", ApiKey::new(bad), Authority::User);
        assert_eq!(error.unwrap_err().kind(), Kind::NoKey);
    }
    assert!(providers.model_with_key("gpt-4o", ApiKey::new(KEY), Authority::User).is_ok());
}
