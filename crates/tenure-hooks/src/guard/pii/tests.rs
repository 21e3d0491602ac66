mod fold;

use super::detector::{Detector, Strategy};
use super::scan::{Blocked, Counts, Custom, Rule, Scanner, Source};
use super::stream::Filter;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde_json::json;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tenure_core::hook::TextFilter;

const PEM: &str =
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKCAQEA\n-----END RSA PRIVATE KEY-----";
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N";

fn scanner(strategy: Strategy) -> Scanner {
    let rules = Detector::ALL.map(|detector| Rule { source: Source::Known(detector), strategy });
    Scanner { rules: rules.into(), salt: String::new() }
}

/// Patterns of one's own, compiled once: that takes longer than what is done with them.
static OWN: LazyLock<Vec<Custom>> = LazyLock::new(|| {
    let patterns = [
        ("employee", r"EMP-\d{4,}"),
        ("case", r"(?i)case no\.? \w+\b"),
        ("ending", "x{3}y$"),
        ("line", "(?m)^to: .*zz"),
    ];
    patterns.map(|(name, pattern)| Custom::new(name, pattern).expect("it is a pattern")).into()
});

fn with_own(strategy: Strategy) -> Scanner {
    let mut scanner = scanner(strategy);
    for custom in OWN.iter().cloned() {
        scanner.rules.push(Rule { source: Source::Own(custom), strategy });
    }
    scanner
}

fn cleaned(scanner: &Scanner, text: &str) -> String {
    let clean = scanner.clean(text, &mut Counts::new()).unwrap();
    clean.unwrap_or_else(|| text.to_owned())
}

/// What goes out of a text that comes in these pieces.
fn flown(scanner: &Scanner, pieces: &[&str]) -> Vec<String> {
    let mut flowing = Filter(Arc::new(scanner.clone())).open();
    pieces.iter().map(|piece| flowing.push(piece)).collect()
}

#[test]
fn each_detector_finds_what_it_is_for() {
    let redact = scanner(Strategy::Redact);
    for (text, clean) in [
        ("write to ann.b+c@mail.example.co.uk.", "write to [REDACTED_EMAIL]."),
        ("<jürgen@müller.de>", "<[REDACTED_EMAIL]>"),
        ("4111 1111 1111 1111, please", "[REDACTED_CREDIT_CARD], please"),
        ("5500-0055-5555-5559", "[REDACTED_CREDIT_CARD]"),
        ("amex 378282246310005", "amex [REDACTED_CREDIT_CARD]"),
        ("room 12 4111111111111111", "room 12 [REDACTED_CREDIT_CARD]"),
        ("from 192.168.0.255.", "from [REDACTED_IP]."),
        ("at 2001:db8::8a2e:370:7334, ::1", "at [REDACTED_IP], [REDACTED_IP]"),
        ("00:1B:44:11:3A:B7", "[REDACTED_MAC_ADDRESS]"),
        ("00-1b-44-11-3a-b7!", "[REDACTED_MAC_ADDRESS]!"),
        ("(see https://example.org/a?b=c).", "(see [REDACTED_URL])."),
        ("www.example.org is old", "[REDACTED_URL] is old"),
        ("call +41 44 668 18 00 now", "call [REDACTED_PHONE] now"),
        ("(555) 123-4567 or 555-123-4567", "[REDACTED_PHONE] or [REDACTED_PHONE]"),
        ("+1 (555) 123-4567", "[REDACTED_PHONE]"),
        ("GB29 NWBK 6016 1331 9268 19 it is", "[REDACTED_IBAN] it is"),
        ("DE89370400440532013000", "[REDACTED_IBAN]"),
        ("ssn 123-45-6789.", "ssn [REDACTED_US_SSN]."),
        ("key sk-proj-abcdefghij0123456789", "key [REDACTED_API_KEY]"),
        ("AKIAIOSFODNN7EXAMPLE", "[REDACTED_API_KEY]"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[REDACTED_API_KEY]"),
        ("xoxb-12345-abcdef", "[REDACTED_API_KEY]"),
        (JWT, "[REDACTED_JWT]"),
        (PEM, "[REDACTED_PRIVATE_KEY]"),
        (
            "Authorization: Bearer abcdef0123456789abcdef",
            "Authorization: Bearer [REDACTED_BEARER_TOKEN]",
        ),
        ("password=hunter2!", "password=[REDACTED_PASSWORD]"),
        (r#"{"db_password": "s3cret-One"}"#, r#"{"db_password": "[REDACTED_PASSWORD]"}"#),
        ("API_KEY => 'Zm9vYmFy1'", "API_KEY => '[REDACTED_PASSWORD]'"),
    ] {
        assert_eq!(cleaned(&redact, text), clean, "{text}");
    }
}

#[test]
fn what_only_looks_alike_is_left() {
    let redact = scanner(Strategy::Redact);
    for text in [
        "nothing @ all, a@b and @name",
        "4111 1111 1111 1112",
        "12345678901234567890123",
        "version 1.2.3 and 999.1.1.1 and 1.2.3.4.5",
        "std::fmt::Display at 12:34:56",
        "on 2024-05-31, 10 000 times",
        "GB29 NWBK 6016 1331 9268 18",
        "000-12-3456",
        "sk-this-is-only-a-name-of-something",
        "-----BEGIN CERTIFICATE-----\nMIIEow\n-----END CERTIFICATE-----",
        "the bearer of this letter is a friend",
        "password: required, token: string",
        "Ein Satz mit Umlauten: Größe, Öl.",
    ] {
        assert_eq!(cleaned(&redact, text), text);
    }
}

#[test]
fn a_mask_leaves_the_end_and_a_hash_is_the_same_for_the_same() {
    let mask = scanner(Strategy::Mask);
    for (text, clean) in [
        ("ann@example.org", "****@example.org"),
        ("4111 1111 1111 1111", "**** **** **** 1111"),
        ("4111111111111111", "************1111"),
        ("10.1.2.3", "*.*.*.3"),
        ("00:1B:44:11:3A:B7", "**:**:**:**:**:B7"),
        ("https://example.org/a", "[MASKED_URL]"),
        ("+41 44 668 18 00", "****8 00"),
        ("DE89370400440532013000", "****3000"),
        ("123-45-6789", "****6789"),
        ("AKIAIOSFODNN7EXAMPLE", "****MPLE"),
        ("password=hunter2!", "password=****"),
    ] {
        assert_eq!(cleaned(&mask, text), clean);
        assert_eq!(cleaned(&mask, clean), clean, "what was masked is left alone");
    }
    let hash = scanner(Strategy::Hash);
    let (one, other) = (cleaned(&hash, "ann@example.org"), cleaned(&hash, "bob@example.org"));
    assert!(one.starts_with("<email_hash:") && one.len() == "<email_hash:>".len() + 12, "{one}");
    assert_eq!(one, cleaned(&hash, "ann@example.org"));
    assert_ne!(one, other);
    let salted = Scanner { salt: "pepper".into(), ..hash.clone() };
    assert_ne!(one, cleaned(&salted, "ann@example.org"));
    for text in ["password=hunter2!", "ann@example.org", JWT] {
        let clean = cleaned(&hash, text);
        assert_eq!(cleaned(&hash, &clean), clean, "what was hashed is left alone");
    }
}

#[test]
fn what_overlaps_is_one_and_the_strictest_counts() {
    let mut scanner = scanner(Strategy::Redact);
    let text = "https://u:p@example.org/ann@example.org?token=abc123def";
    assert_eq!(cleaned(&scanner, text), "[REDACTED_URL]");
    // The same when the shorter match is the stricter one.
    for rule in &mut scanner.rules {
        if rule.name() == "url" {
            rule.strategy = Strategy::Mask;
        }
    }
    assert_eq!(cleaned(&scanner, text), "[REDACTED_EMAIL]");
    for rule in &mut scanner.rules {
        if rule.name() == "password" {
            rule.strategy = Strategy::Block;
        }
    }
    let blocked = scanner.clean(text, &mut Counts::new());
    assert_eq!(blocked, Err(Blocked("password".into())));
}

#[test]
fn values_are_cleaned_through_and_through() {
    let redact = scanner(Strategy::Redact);
    let mut value = json!({
        "to": ["ann@example.org", { "ip": "10.0.0.1" }],
        "bob@example.org": 1,
        "card": 4111111111111111_u64,
        "password": "hunter2!",
        "count": 3,
    });
    let mut counts = Counts::new();
    assert_eq!(redact.clean_value(&mut value, &mut counts), Ok(true));
    let clean = json!({
        "to": ["[REDACTED_EMAIL]", { "ip": "[REDACTED_IP]" }],
        "[REDACTED_EMAIL]": 1,
        "card": "[REDACTED_CREDIT_CARD]",
        "password": "[REDACTED_PASSWORD]",
        "count": 3,
    });
    assert_eq!(value, clean);
    assert_eq!((counts["email"], counts["password"]), (2, 1));
    assert_eq!(redact.clean_value(&mut value, &mut counts), Ok(false));
}

#[test]
fn patterns_that_cannot_work_are_refused() {
    for (name, pattern, why) in [
        ("Big", "a", "no name for a pattern"),
        ("email", "a", "the name of a detector"),
        ("a", "(", "no regular expression"),
        ("a", "x*", "matches where nothing is"),
    ] {
        let refused = Custom::new(name, pattern).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn no_text_takes_long() {
    let redact = scanner(Strategy::Redact);
    let long = |part: &str| part.repeat(300_000 / part.len());
    for part in [
        "a",
        "@",
        "a@",
        "a.b@c.d ",
        "1 ",
        "+1(",
        "4-",
        "sk-",
        "eyJ-",
        "eyJaaaaaaaaaa.",
        "token=",
        "http://",
        "-----BEGIN",
        "-----BEGIN PRIVATE KEY-----",
        "AA00 ",
        "1.1.1.",
        "a:",
        "bearer ",
        "www.",
        "é",
        "\u{200b}",
        "a\u{200b}@",
        "ａ＠ｂ．",
        "４-",
    ] {
        let text = long(part);
        let begun = Instant::now();
        let _ = redact.all(&text);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{part}: {took:?}");
    }
    let text = "Dear Ann, write to ann@example.org or call +41 44 668 18 00. ".repeat(17_000);
    let begun = Instant::now();
    assert_eq!(redact.all(&text).len(), 34_000);
    assert!(text.len() > 1_000_000 && begun.elapsed() < Duration::from_secs(20));
    // The same while it is made, in pieces; and with patterns of one's own.
    let redact = with_own(Strategy::Redact);
    for part in ["a", "-----BEGIN PRIVATE KEY-----", "http://", "4-", "EMP-1234"] {
        let text = part.repeat(50_000 / part.len());
        let pieces: Vec<&str> =
            text.as_bytes().chunks(10).map(|it| str::from_utf8(it).unwrap()).collect();
        let begun = Instant::now();
        let _ = flown(&redact, &pieces);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{part}: {took:?}");
    }
}

#[test]
fn text_flows_word_by_word_and_what_is_taken_out_never_does() {
    let redact = with_own(Strategy::Redact);
    let text = "Dear Ann, you wrote from ann@example.org on 4 May, about EMP-12345 and more.";
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    let out = flown(&redact, &letters);
    let whole: String = out.concat();
    let expected =
        "Dear Ann, you wrote from [REDACTED_EMAIL] on 4 May, about [REDACTED_EMPLOYEE] and ";
    assert_eq!(whole, expected);
    assert!(out.iter().filter(|piece| !piece.is_empty()).count() > 10, "{out:?}");
    // Where nothing can be in it, it flows at once.
    let out = flown(&redact, &["我在", "这里。", "好"]);
    assert_eq!(out.concat(), "我在这里。好");
}

#[test]
fn a_key_in_its_armour_is_held_back_from_its_first_line() {
    let redact = scanner(Strategy::Redact);
    let text = format!("here: {PEM}\nthat was it, and so on");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let out = flown(&redact, &lines);
    assert_eq!(out[0], "here: ");
    assert_eq!(out[1..4].concat(), "[REDACTED_PRIVATE_KEY]\n");
    assert_eq!(out.concat(), "here: [REDACTED_PRIVATE_KEY]\nthat was it, and so ");
}

/// Letters and digits without a pattern, the same for the same seed.
fn noise(seed: u64, length: usize) -> String {
    const SIGNS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        char::from(SIGNS[usize::try_from(state >> 33).expect("it is 31 bits") % SIGNS.len()])
    };
    (0..length).map(|_| next()).collect()
}

/// A long secret of each kind, and the name that it is known by.
fn long_ones(noise: &str) -> [(String, &'static str); 7] {
    let lines: Vec<&str> =
        noise.as_bytes().chunks(64).map(|it| str::from_utf8(it).expect("it is ASCII")).collect();
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", lines.join("\n"));
    [
        (format!("AWS_SESSION_TOKEN={noise}"), "AWS_SESSION_TOKEN=[REDACTED_PASSWORD]"),
        (format!("password: '{noise}'"), "password: '[REDACTED_PASSWORD]'"),
        (format!("ghp_{noise}"), "[REDACTED_API_KEY]"),
        (format!("Bearer {noise}"), "Bearer [REDACTED_BEARER_TOKEN]"),
        (format!("eyJ{noise}.eyJ{noise}.{noise}"), "[REDACTED_JWT]"),
        (key, "[REDACTED_PRIVATE_KEY]"),
        (format!("https://example.org/{noise}"), "[REDACTED_URL]"),
    ]
}

#[test]
fn a_secret_is_taken_out_to_its_end_however_long_it_is() {
    let redact = scanner(Strategy::Redact);
    for length in [255, 256, 257, 600, 2_100, 8_191, 8_193, 16_400, 40_000] {
        for (secret, clean) in long_ones(&noise(7, length)) {
            let text = format!("here: {secret} done");
            assert_eq!(cleaned(&redact, &text), format!("here: {clean} done"), "{length}");
        }
    }
    // A key whose end is missing has no end.
    let text = format!("-----BEGIN PRIVATE KEY-----\n{}", noise(7, 20_000));
    assert_eq!(cleaned(&redact, &text), "[REDACTED_PRIVATE_KEY]");
}

#[test]
fn a_telephone_number_in_brackets_is_held_back_from_its_bracket() {
    let pieces = ["call (415) ", "555-", "1234 now, ", "please"];
    let mut redact = scanner(Strategy::Redact);
    assert_eq!(flown(&redact, &pieces).concat(), "call [REDACTED_PHONE] now, ");
    redact.rules.retain(|rule| rule.name() == "phone");
    assert_eq!(flown(&redact, &pieces).concat(), "call [REDACTED_PHONE] now, please");
}

#[test]
fn nothing_follows_what_is_blocked() {
    let block = scanner(Strategy::Block);
    let out = flown(&block, &["hello ", "ann@example.org", " and ", "more words, ", "many"]);
    assert_eq!(out.concat(), "hello ");
}

/// Something that is taken out, wherever it stands between blanks.
fn planted() -> impl proptest::strategy::Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}@[a-z]{2,8}\\.(com|org|de)",
        Just("4111 1111 1111 1111".to_owned()),
        "(10|192)\\.[1-9]\\.[1-9]\\.[1-9]",
        Just("2001:db8::8a2e:370:7334".to_owned()),
        "https://[a-z]{3,8}\\.org/[a-z0-9]{0,9}",
        Just("+41 44 668 18 00".to_owned()),
        Just("GB29 NWBK 6016 1331 9268 19".to_owned()),
        Just("123-45-6789".to_owned()),
        "ghp_[a-zA-Z0-9]{19}[0-9]",
        Just(JWT.to_owned()),
        Just(PEM.to_owned()),
        "EMP-[0-9]{4,9}",
    ]
}

/// What texts are made of: words, signs, and what begins like something that is taken out.
fn part() -> impl proptest::strategy::Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z]{1,9}",
        2 => Just(" ".to_owned()),
        1 => "[0-9]{1,6}",
        1 => "[ .,:;()@+=\\-\n]{1,4}",
        1 => prop_oneof![
            Just("ann@"), Just("http"), Just("://"), Just("-----BEGIN"), Just("-----END"),
            Just(" PRIVATE KEY-----"), Just("+41"), Just("Bearer "), Just("password="),
            Just("token: "), Just("4111 1111"), Just("EMP-"), Just("case no. "), Just("xxxy"),
            Just("to: "), Just("zz"), Just("eyJhbGciOiJI"), Just("sk-"), Just("GB29"), Just("é"),
            Just("中文"), Just("\n"),
        ].prop_map(str::to_owned),
        1 => planted(),
    ]
}

fn in_pieces(text: &str, sizes: &[usize]) -> Vec<String> {
    let (mut pieces, mut sizes) = (Vec::new(), sizes.iter().cycle());
    let mut letters = text.chars().peekable();
    while letters.peek().is_some() {
        let size = *sizes.next().unwrap_or(&1);
        pieces.push(letters.by_ref().take(size.max(1)).collect());
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_went_out_is_the_beginning_of_what_is_left(
        parts in prop::collection::vec(part(), 0..30),
        sizes in prop::collection::vec(1_usize..24, 1..8),
        strategy in prop_oneof![Just(Strategy::Redact), Just(Strategy::Mask), Just(Strategy::Hash)],
    ) {
        let scanner = with_own(strategy);
        let text = parts.concat();
        let clean = cleaned(&scanner, &text);
        let pieces = in_pieces(&text, &sizes);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let out = flown(&scanner, &pieces).concat();
        prop_assert!(clean.starts_with(&out), "{text:?}\nout   {out:?}\nclean {clean:?}");
    }

    #[test]
    fn what_is_planted_never_goes_out_and_the_words_around_it_do(
        items in prop::collection::vec(("[a-z]{2,9}", planted()), 1..6),
        sizes in prop::collection::vec(1_usize..24, 1..8),
    ) {
        let scanner = with_own(Strategy::Redact);
        let mut text: String = items.iter().map(|(word, item)| format!("{word} {item} , ")).collect();
        text.push_str("and so on until the end");
        let pieces = in_pieces(&text, &sizes);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let out = flown(&scanner, &pieces).concat();
        for (word, item) in &items {
            prop_assert!(!out.contains(item.as_str()), "{item}: {out}");
            prop_assert!(out.contains(word.as_str()), "{word}: {out}");
        }
        prop_assert!(out.ends_with("and so on until the "), "{out}");
    }

    #[test]
    fn nothing_gets_out_behind_what_is_blocked(
        before in "[a-z ]{0,30}", item in planted(), after in "[a-z ]{0,30}",
        sizes in prop::collection::vec(1_usize..24, 1..8),
    ) {
        let scanner = with_own(Strategy::Block);
        let text = format!("{before} {item} {after}");
        let pieces = in_pieces(&text, &sizes);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let out = flown(&scanner, &pieces).concat();
        prop_assert!(format!("{before} ").starts_with(&out), "{out}");
        prop_assert!(scanner.clean(&text, &mut Counts::new()).is_err());
    }
}

proptest! {
    // Fewer: each is long.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_of_what_is_long_goes_out(
        seed in any::<u64>(), kind in 0_usize..7,
        length in prop_oneof![
            4 => 200_usize..1_400, 1 => 8_100_usize..8_300, 1 => 16_300_usize..16_500,
        ],
        sizes in prop::collection::vec(1_usize..400, 1..8),
        strategy in prop_oneof![Just(Strategy::Redact), Just(Strategy::Mask), Just(Strategy::Hash)],
    ) {
        let scanner = with_own(strategy);
        let noise = noise(seed, length);
        let (secret, _) = &long_ones(&noise)[kind];
        let text = format!("dear ann , {secret} , and so on until the end");
        let clean = cleaned(&scanner, &text);
        let pieces = in_pieces(&text, &sizes);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let out = flown(&scanner, &pieces).concat();
        prop_assert!(out.starts_with("dear ann , "), "{out}");
        prop_assert!(clean.starts_with(&out), "{text:?}\nout   {out:?}\nclean {clean:?}");
        for part in noise.as_bytes().chunks_exact(8).map(|it| str::from_utf8(it).expect("ASCII")) {
            prop_assert!(!clean.contains(part), "{part}: {clean}");
        }
    }
}
