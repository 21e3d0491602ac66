//! Model strings, as cards use them.

use tenure_models::provider::{
    Authority, Price, ProviderConfig, ProviderEntry, ProviderErrorKind as Kind, Providers, Wire,
};

fn providers() -> Providers {
    Providers::with_env(ProviderConfig::default(), |_| None)
}

fn target(spec: &str) -> (String, String) {
    let target = providers().resolve(spec).unwrap();
    (target.provider, target.model)
}

#[test]
fn a_string_names_a_provider_and_a_model() {
    let cases = [
        ("openai.gpt-4o", "openai", "gpt-4o"),
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("gpt-4.1", "openai", "gpt-4.1"),
        ("o3-mini", "openai", "o3-mini"),
        ("o3-mini.high", "openai", "o3-mini"),
        ("gpt-4o?temperature=0.2", "openai", "gpt-4o"),
        ("claude-haiku-4-5", "anthropic", "claude-haiku-4-5"),
        ("gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("gemini.gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("sonnet", "anthropic", "claude-sonnet-5"),
        ("haiku?reasoning=1024", "anthropic", "claude-haiku-4-5"),
        ("gpt51", "openai", "gpt-5.1"),
        ("gemini25pro", "google", "gemini-2.5-pro"),
        ("ollama.llama3.2:1b", "ollama", "llama3.2:1b"),
        ("generic.llama3.2:latest", "generic", "llama3.2:latest"),
        ("groq.meta-llama/llama-4", "groq", "meta-llama/llama-4"),
        ("openrouter/google/gemma-3", "openrouter", "google/gemma-3"),
        ("openrouter.anthropic/claude", "openrouter", "anthropic/claude"),
        ("hf.openai/gpt-oss-20b:groq", "hf", "openai/gpt-oss-20b:groq"),
        ("kimi:together", "hf", "moonshotai/Kimi-K2.7-Code:together"),
        (" sonnet ", "anthropic", "claude-sonnet-5"),
    ];
    for (spec, provider, model) in cases {
        assert_eq!(target(spec), (provider.to_owned(), model.to_owned()), "{spec}");
    }
}

#[test]
fn a_target_says_where_it_is_and_what_its_key_is_called() {
    let target = providers().resolve("openai.gpt-4o").unwrap();
    assert_eq!(target.wire, Wire::OpenAi);
    assert_eq!(target.base_url, "https://api.openai.com/v1");
    assert_eq!(target.host, "api.openai.com");
    assert_eq!(target.url_by, Authority::User);
    assert_eq!(target.key_name.as_deref(), Some("OPENAI_API_KEY"));
    assert!(!target.has_key);
    assert_eq!(target.price, Some(Price::new(2.5, 10.0).with_cached(1.25)));
    assert_eq!(providers().resolve("openai.gpt-99").unwrap().price, None);
}

#[test]
fn what_cannot_be_read_is_refused_with_what_was_meant() {
    let cases = [
        ("", Kind::BadSpec, "provider.model"),
        ("antropic.claude-x", Kind::UnknownModel, "did you mean `anthropic.claude-x`?"),
        ("sonet", Kind::UnknownModel, "did you mean `sonnet`?"),
        ("llama3", Kind::UnknownModel, "known providers are"),
        ("openai.", Kind::BadSpec, "openai.<model>"),
        ("openai.gpt 4", Kind::BadSpec, "as the provider does"),
        ("gpt-4o?temprature=1", Kind::BadSpec, "did you mean `temperature`?"),
        ("gpt-4o?temperature=hot", Kind::BadSpec, "a number"),
        ("gpt-4o?temperature=NaN", Kind::BadSpec, "a number"),
        ("gpt-4o?max_tokens=0", Kind::BadSpec, "above 0"),
        ("gpt-4o?reasoning=lots", Kind::BadSpec, "xhigh"),
        ("gpt-4o?web_search=on", Kind::Unsupported, "leave `web_search` out"),
        ("bedrock.amazon.nova", Kind::Unsupported, "compatible gateway"),
        ("azure.my-deployment", Kind::Unsupported, "base_url"),
        ("responses.gpt-5.1", Kind::Unsupported, "openai.<model>"),
        ("codexresponses.gpt-5.3", Kind::Unsupported, "openai.<model>"),
        ("tensorzero.f", Kind::Unsupported, "base_url"),
    ];
    for (spec, kind, help) in cases {
        let error = providers().resolve(spec).unwrap_err();
        assert_eq!(error.kind(), kind, "{spec}: {error}");
        assert!(error.help().contains(help), "{spec}: {}", error.help());
        assert!(spec.is_empty() || error.to_string().contains(spec.split('?').next().unwrap()));
    }
}

#[test]
fn the_users_short_names_come_first_and_lead_somewhere() {
    let mut config = ProviderConfig::default();
    for (alias, spec) in [
        ("fast", "haiku?temperature=0"),
        ("sonnet", "openai.gpt-4o"),
        ("opus", "opus?temperature=1"),
        ("round", "about"),
        ("about", "round"),
    ] {
        config.aliases.insert(alias.to_owned(), spec.to_owned());
    }
    let providers = Providers::with_env(config, |_| None);
    let model = |spec: &str| providers.resolve(spec).unwrap().model;
    assert_eq!(model("fast"), "claude-haiku-4-5");
    assert_eq!(model("sonnet"), "gpt-4o");
    // A name may stand for the built-in one, with options.
    assert_eq!(model("opus"), "claude-opus-5");
    let error = providers.resolve("round").unwrap_err();
    assert!(matches!(error.kind(), Kind::BadSpec | Kind::UnknownModel), "{error}");
}

#[test]
fn a_provider_of_ones_own_has_a_wire_and_an_address() {
    let mut config = ProviderConfig::default();
    let mut entry = ProviderEntry::default();
    entry.base_url = Some(("http://127.0.0.1:8000/v1/".to_owned(), Authority::User));
    config.providers.insert("mine".to_owned(), entry.clone());
    let error = Providers::with_env(config.clone(), |_| None).resolve("mine.model").unwrap_err();
    assert!(error.help().contains("kind = \"openai\""), "{}", error.help());
    entry.wire = Some(Wire::OpenAi);
    config.providers.insert("mine".to_owned(), entry);
    let target = Providers::with_env(config, |_| None).resolve("mine.org/model-1.5").unwrap();
    assert_eq!((target.provider.as_str(), target.model.as_str()), ("mine", "org/model-1.5"));
    assert_eq!(target.base_url, "http://127.0.0.1:8000/v1");
    assert_eq!(target.key_name.as_deref(), Some("MINE_API_KEY"));
}

#[test]
fn the_environment_says_where_a_server_is() {
    let env = |name: &str| match name {
        "OPENAI_BASE_URL" => Some("https://proxy.example/openai".to_owned()),
        "OLLAMA_HOST" => Some("0.0.0.0:11500".to_owned()),
        _ => None,
    };
    let providers = Providers::with_env(ProviderConfig::default(), env);
    assert_eq!(providers.resolve("gpt-4o").unwrap().base_url, "https://proxy.example/openai");
    assert_eq!(providers.resolve("ollama.x").unwrap().base_url, "http://127.0.0.1:11500");
    let broken = Providers::with_env(ProviderConfig::default(), |_| Some("not a url".to_owned()));
    assert_eq!(broken.resolve("gpt-4o").unwrap_err().kind(), Kind::BadVariable);
}

#[test]
fn every_provider_is_listed_with_its_key() {
    let mut config = ProviderConfig::default();
    let mut entry = ProviderEntry::default();
    entry.wire = Some(Wire::OpenAi);
    entry.base_url = Some(("https://models.example/v1".to_owned(), Authority::Project));
    config.providers.insert("mine".to_owned(), entry);
    let providers =
        Providers::with_env(config, |name| (name == "GOOGLE_API_KEY").then(|| "k".to_owned()));
    let listed = providers.known_providers();
    let find = |name: &str| listed.iter().find(|status| status.name == name).unwrap();
    assert!(find("google").has_key);
    assert_eq!(find("google").key_name, "GOOGLE_API_KEY");
    assert!(!find("openai").has_key && !find("openai").keyless);
    assert!(find("ollama").keyless);
    assert_eq!(
        (find("mine").host.as_str(), find("mine").url_by),
        ("models.example", Authority::Project)
    );
    assert!(listed.is_sorted_by(|a, b| a.name < b.name));
}

#[test]
fn aliases_that_go_round_in_a_circle_are_told_so() {
    let mut config = ProviderConfig::default();
    for (name, target) in [("a", "b"), ("b", "a?temperature=0"), ("gpt-4o", "gpt-4o?top_p=1")] {
        config.aliases.insert(name.to_owned(), target.to_owned());
    }
    let providers = Providers::with_env(config, |_| None);
    let error = providers.resolve("a").unwrap_err();
    assert_eq!(error.kind(), Kind::BadSpec);
    let said = error.to_string();
    assert!(said.ends_with("the aliases go round in a circle: a -> b -> a"), "{said}");
    // A model's own name with options is no circle.
    assert_eq!(providers.resolve("gpt-4o").unwrap().model, "gpt-4o");
}
