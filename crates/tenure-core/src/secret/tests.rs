use super::*;
use serde_json::json;
use std::borrow::Cow;
use std::time::Instant;

#[test]
fn every_place_of_every_secret_is_hidden_and_the_longest_wins() {
    let redactor = Redactor::of(["abcdef", "abcdefgh", "redacted", "", "tiny"]);
    for (text, expected) in [
        ("abcdef abcdefgh", "[redacted] [redacted]"),
        ("abcdefabcdef", "[redacted][redacted]"),
        ("xabcdefghx", "x[redacted]x"),
        ("tiny abcde", "tiny abcde"),
        ("redacted", "[redacted]"),
        ("é abcdef é", "é [redacted] é"),
        ("", ""),
    ] {
        assert_eq!(redactor.redact(text), expected, "{text}");
    }
    assert!(matches!(redactor.redact("nothing"), Cow::Borrowed("nothing")));
    assert_eq!(format!("{redactor:?}"), "Redactor(3)");
}

#[test]
fn clones_are_one_and_hide_what_any_of_them_learns() {
    let one = Redactor::of(["abcdef"]);
    let other = one.clone();
    other.learn(["uvwxyz", "abcdefgh"]);
    assert_eq!(one.redact("abcdefgh uvwxyz abcdef"), "[redacted] [redacted] [redacted]");
    one.learn(["uvwxyz"]);
    assert_eq!(format!("{other:?}"), "Redactor(3)");
}

#[test]
fn a_secret_is_found_inside_json_in_an_address_and_by_its_lines() {
    let redactor = Redactor::of(["pass\"word\n", "first line\nsecond line\n}", "a/b?c=d+e"]);
    assert_eq!(redactor.redact(r#"{"a":"pass\"word"}"#), r#"{"a":"[redacted]"}"#);
    assert_eq!(redactor.redact("log: second line"), "log: [redacted]");
    assert_eq!(redactor.redact("?token=a%2Fb%3Fc%3Dd%2Be&x"), "?token=[redacted]&x");
    assert_eq!(redactor.redact("}"), "}");
}

#[test]
fn json_stays_json_and_it_is_said_whether_something_was_hidden() {
    let redactor = Redactor::of(["123456", "\"a\":\"b\""]);
    let mut value = json!({"a": "b", "n": 123456, "x123456": ["123456!", {"y": "\"a\":\"b\""}]});
    assert!(redactor.redact_json(&mut value));
    let expected = json!({
        "a": "b", "n": 123456, "x[redacted]": ["[redacted]!", {"y": "[redacted]"}]
    });
    assert_eq!(value, expected);
    assert!(!redactor.redact_json(&mut value));
}

#[test]
fn a_pass_changes_what_is_left_and_replaces_one_of_its_name() {
    let redactor = Redactor::of(["sesame-open"]);
    for mark in ["<first>", "<mail>"] {
        let pass =
            move |text: &str, _| text.contains("ann@").then(|| text.replace("ann@x.org", mark));
        redactor.add_pass("pii", PassScope::Shown, pass);
    }
    assert_eq!(redactor.redact("ann@x.org: sesame-open"), "<mail>: [redacted]");
    assert!(matches!(redactor.redact("<mail>: [redacted]"), Cow::Borrowed(_)));
    let mut record = json!("ann@x.org: sesame-open");
    assert!(redactor.redact_record(&mut record));
    assert_eq!(record, "ann@x.org: [redacted]");
    redactor.add_pass("also", PassScope::Recorded, |text, _| Some(text.replace("ann@", "***@")));
    assert!(redactor.redact_record(&mut record));
    assert_eq!(record, "***@x.org: [redacted]");
}

#[test]
fn what_looks_like_a_secret_is_hidden_although_nobody_named_it() {
    let redactor = Redactor::new();
    for (text, expected) in [
        ("key sk-proj-0123456789abcdefghij!", "key [redacted]!"),
        ("sk-ant-api03-AbCdEfGhIjKlMnOp0123", "[redacted]"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ", "[redacted]"),
        ("t=github_pat_11ABCDEFG0123456789_abcdef", "t=[redacted]"),
        ("xoxb-123456789012-abcdef", "[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        ("AIzaSyA0123456789abcdefghijklmnopqrstu", "[redacted]"),
        ("glpat-0123456789abcdefghij", "[redacted]"),
        ("hf_abcdefghij0123456789abcdefghij0123", "[redacted]"),
        ("npm_abcdefghij0123456789abcdefghij0123", "[redacted]"),
        ("pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3ODkwMjI", "[redacted]"),
        ("SG.abcdefghij0123456789.abcdefghij0123456789xyz", "[redacted]"),
        ("(eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl)", "([redacted])"),
        ("Authorization: Bearer abcdef0123456789xyz", "Authorization: Bearer [redacted]"),
        ("authorization: basic dXNlcjpwYXNzd29yZDEyMw==", "authorization: basic [redacted]"),
        ("postgres://me:hunter2@db/x?y=1", "postgres://me:[redacted]@db/x?y=1"),
        ("redis://:p%40ss@cache:6379", "redis://:[redacted]@cache:6379"),
        ("https://u:a:b@h and https://v:c@h", "https://u:[redacted]@h and https://v:[redacted]@h"),
        (
            "a\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\nb",
            "a\n[redacted]\nb",
        ),
        (
            r#"{"k":"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2\n-----END EC PRIVATE KEY-----\n"}"#,
            r#"{"k":"[redacted]\n"}"#,
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA", "[redacted]"),
    ] {
        assert_eq!(redactor.redact(text), expected, "{text}");
        redactor.learn(["unrelated-value"]);
    }
    redactor.ignore_shapes();
    assert_eq!(redactor.redact("postgres://me:hunter2@db"), "postgres://me:hunter2@db");
    assert_eq!(redactor.redact("unrelated-value"), "[redacted]");
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let redactor = Redactor::new();
    for text in [
        "The desk is brown; ask-me-anything-2024-live-session-recording.",
        "<div class=\"sk-folding-cube-2 sk-cube1 sk-three-bounce-delay-animation\">",
        "pip install sk-learn-contrib-package-v2-and-more",
        "the pypi-publish-action-workflow-configuration-v1 job",
        "see https://example.org/a:b@c and mailto:ann@example.org",
        "git@github.com:tenure/tenure.git, ssh://git@github.com:22/x",
        "postgres://${USER}:${PASSWORD}@db, amqp://user:<password>@mq, x://u:***@h",
        "Bearer tokens are used; Basic authentication is basic",
        "A key begins with -----BEGIN PRIVATE KEY----- and then has lines.",
        "if line == '-----BEGIN RSA PRIVATE KEY-----': return",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n-----END CERTIFICATE-----",
        "eyJ is how JSON in base64 begins. eyJ.x",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "550e8400-e29b-41d4-a716-446655440000",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "fn dapify(x: u32) -> u32; hf_hub_download(repo_id); npm_config_cache",
        "ASIATIC markets, AKIAN, AIzawa; xai-org/grok",
    ] {
        assert!(matches!(redactor.redact(text), Cow::Borrowed(_)), "{}", redactor.redact(text));
    }
}

#[test]
fn the_beginning_of_a_secret_is_not_known_to_be_none() {
    let redactor = Redactor::of(["abcdef", "abcdefgh", "éabcdef"]);
    for (text, expected) in
        [("", 0), ("z", 0), ("z acd", 0), ("z ab", 2), ("abcdef", 6), ("abcdefgh", 0), ("z é", 2)]
    {
        assert_eq!(redactor.unfinished(text), expected, "{text}");
    }
    assert_eq!(Redactor::new().unfinished("acd"), 0);
}

#[test]
fn a_secret_that_comes_in_pieces_is_hidden_however_it_is_cut() {
    let redactor = Redactor::of(["sesame-open-123"]);
    for secret in [
        "sesame-open-123",
        "ghp_0123456789abcdefghijABCDEFGHIJ",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END PRIVATE KEY-----",
        "Bearer abcdef0123456789xyz",
        "postgres://me:hunter2@db/x",
    ] {
        let text = format!("it is {secret} indeed, and that is all.");
        let whole = redactor.redact(&text).into_owned();
        for size in 1..text.len() {
            let (mut shown, mut held) = (String::new(), String::new());
            for piece in text.as_bytes().chunks(size) {
                held.push_str(std::str::from_utf8(piece).expect("letters"));
                let sure = held.len() - redactor.unfinished(&held);
                shown.push_str(&redactor.redact(&held[..sure]));
                held.drain(..sure);
            }
            shown.push_str(&redactor.redact(&held));
            assert_eq!(shown, whole, "in pieces of {size}");
        }
    }
}

#[test]
fn a_private_key_that_is_printed_line_by_line_is_hidden_from_begin_to_end() {
    let redactor = Redactor::new();
    let (one, other) = ("one".into(), "other".into());
    let mut shown = Vec::new();
    for line in [
        "here: -----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "MIIEowIBAAKC",
        "AQEA0Z3VS5JJ",
        "-----END RSA PRIVATE KEY-----, that was it",
        "MIIEowIBAAKC",
    ] {
        let mut beside = String::from("MIIEowIBAAKC");
        assert!(!redactor.redact_line(&other, &mut beside), "another source is not in a key");
        let mut line = line.to_owned();
        redactor.redact_line(&one, &mut line);
        shown.push(line);
    }
    let expected = [
        "here: -----BEGIN RSA PRIVATE KEY-----",
        "[redacted]",
        "[redacted]",
        "[redacted]",
        "-----END RSA PRIVATE KEY-----, that was it",
        "MIIEowIBAAKC",
    ];
    assert_eq!(shown, expected);
    // Whoever only speaks of keys hides no more than what could be one.
    let mut line = String::from("it begins with -----BEGIN PRIVATE KEY-----");
    redactor.redact_line(&one, &mut line);
    for ordinary in ["and then (see above)", "goes on"] {
        let mut line = ordinary.to_owned();
        redactor.redact_line(&one, &mut line);
        assert_eq!(line, ordinary);
    }
}

#[test]
fn the_time_grows_with_the_text_and_no_faster() {
    let redactor = Redactor::of(["aaaaaa".to_owned(), "b".repeat(50), "c".repeat(50)]);
    for unit in [
        "aaaaaa ",
        "sk-",
        "sk-1-",
        "eyJ",
        "eyJ.",
        "://",
        "x://a:",
        "x://a:b@",
        "Bearer ",
        "-----BEGIN",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----!",
        "-----END",
        "SG.",
        "SG.1",
        "hvs.abcdefghij0123456789-",
    ] {
        let took = |count: usize| {
            let text = unit.repeat(count);
            let began = Instant::now();
            let shown = redactor.redact(&text).len();
            let open = redactor.unfinished(&text);
            assert!(shown <= 2 * text.len() && open <= text.len(), "{unit}");
            began.elapsed()
        };
        took(1_000);
        let (short, long) = (took(10_000), took(80_000));
        // A square would take 64 times as long.
        assert!(
            long < 32 * short.max(std::time::Duration::from_millis(2)),
            "{unit}: {short:?} {long:?}"
        );
    }
}

#[test]
fn names_of_secrets_are_told_from_others() {
    for name in [
        "API_KEY",
        "OPENAIKEY",
        "SSH_KEYS",
        "GH_TOKEN",
        "GITHUB_PAT",
        "SESSION_JWT",
        "SENTRY_DSN",
        "DB_CONN",
        "AZURE_STORAGE_CONNECTION_STRING",
        "SLACK_WEBHOOK",
        "SLACK_WEBHOOK_URL",
        "TLS_PEM",
        "APP_COOKIE",
        "client_secret",
        "clientSecret",
        "accessToken",
        "DB_PASSWORD",
        "DB_PASS",
        "DB_PWD",
        "MYSQL_PASSWD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "BASIC_AUTH",
        "APP_SESSION",
        "APP_PRIVATE",
        "APP_SIGNATURE",
        "x-api-key",
        "Authorization",
        "Set-Cookie",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "HOME",
        "PATH",
        "PWD",
        "OLDPWD",
        "PATTERN",
        "MONKEY",
        "DATABASE_URL",
        "KEYBOARD",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "COMPASS",
        "MAX_TOKENS",
        "TOKENIZERS_PARALLELISM",
        "SSH_AUTH_SOCK",
        "XDG_SESSION_TYPE",
        "DESKTOP_SESSION",
        "SESSION_MANAGER",
        "DBUS_SESSION_BUS_ADDRESS",
        "CONNECTION",
        "WEBHOOKS_ENABLED",
        "AUTH_TYPE",
        "TOKEN_LIMIT",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn an_address_with_a_password_is_a_secret() {
    let address = "postgres://me:hunter22@db/x";
    assert_eq!(passwords(address), [address, "hunter22"]);
    assert_eq!(secret_parts("DATABASE_URL", address), [address, "hunter22"]);
    assert_eq!(secret_parts("API_KEY", "value"), ["value"]);
    for other in ["https://x.example/a:b@c", "postgres://me@db", "a:b@c", "x://:@y"] {
        assert!(passwords(other).is_empty(), "{other}");
    }
}
