//! What is written in other forms.

use super::super::fold::{Folded, folds, plain};
use super::super::leaves::Quiet;
use super::*;
use regex_automata::meta::Regex;

/// The same text in other characters: for each of its own, as the number says.
fn disguised(text: &str, ways: &[u8]) -> String {
    let mut other = String::new();
    let mut ways = ways.iter().cycle();
    for letter in text.chars() {
        let way = ways.next().copied().unwrap_or(0);
        let wide = match letter {
            ' ' => '\u{3000}',
            '!'..='~' => char::from_u32(u32::from(letter) + 0xfee0).unwrap_or(letter),
            _ => letter,
        };
        let digit = letter.to_digit(10).and_then(|digit| char::from_u32(0x660 + digit));
        match way {
            1 => other.push(wide),
            2 => other.extend(['\u{200b}', letter]),
            3 => other.extend([wide, '\u{ad}', '\u{feff}']),
            4 => other.push(digit.unwrap_or(letter)),
            _ => other.push(letter),
        }
    }
    other
}

#[test]
fn what_is_written_in_other_forms_is_found_where_it_stands() {
    let redact = with_own(Strategy::Redact);
    for (text, clean) in [
        ("an ａｎｎ＠ｅｘａｍｐｌｅ．ｏｒｇ。", "an [REDACTED_EMAIL]。"),
        ("an\u{200b}n@example.org", "[REDACTED_EMAIL]"),
        ("ann\u{2060}@\u{ad}example\u{feff}.o\u{200d}rg, ok", "[REDACTED_EMAIL], ok"),
        ("to\u{3000}ann﹫example․org", "to\u{3000}[REDACTED_EMAIL]"),
        ("𝐚𝐧𝐧@𝖾𝗑𝖺𝗆𝗉𝗅𝖾.org", "[REDACTED_EMAIL]"),
        ("４１１１ １１１１ １１１１ １１１１!", "[REDACTED_CREDIT_CARD]!"),
        ("٤١١١-١١١١-١١١١-١١١١", "[REDACTED_CREDIT_CARD]"),
        ("4111\u{a0}1111\u{202f}1111\u{3000}1111", "[REDACTED_CREDIT_CARD]"),
        ("4111 1111 1\u{200c}111 1111 中", "[REDACTED_CREDIT_CARD] 中"),
        ("é +४१ 44 668 १८ 00 é", "é [REDACTED_PHONE] é"),
        ("１０.0.0.1", "[REDACTED_IP]"),
        ("g\u{200b}hp_0123456789abcdefghijABCDEFGHIJ012345", "[REDACTED_API_KEY]"),
        ("password＝ｈｕｎｔｅｒ２！", "password＝[REDACTED_PASSWORD]"),
        ("pass\u{ad}word: hunt\u{200b}er2!", "pass\u{ad}word: [REDACTED_PASSWORD]"),
        ("ＥＭＰ-12\u{200b}34.", "[REDACTED_EMPLOYEE]."),
        // What has no width at either side is no part of it.
        ("\u{feff}ann@example.org\u{200b} b", "\u{feff}[REDACTED_EMAIL]\u{200b} b"),
    ] {
        assert_eq!(cleaned(&redact, text), clean, "{text:?}");
        let mut counts = Counts::new();
        redact.clean(text, &mut counts).unwrap();
        assert_eq!(counts.values().sum::<usize>(), 1, "{text:?} {counts:?}");
    }
}

#[test]
fn every_strategy_works_on_other_forms() {
    let mask = scanner(Strategy::Mask);
    for (text, clean) in [
        ("ａｎｎ＠ｅｘａｍｐｌｅ．ｏｒｇ", "****@example.org"),
        ("an\u{200b}n@exam\u{ad}ple.org", "****@example.org"),
        ("４１１１ １１１１ １１１１ １２３６", "**** **** **** 1236"),
        ("٤١١١١١١١١١١١١٢٣٦", "************1236"),
        ("４１１１\u{3000}１１１１\u{3000}１１１１\u{3000}１２３６", "**** **** **** 1236"),
        ("10.1.2.\u{200b}３", "*.*.*.3"),
        ("00：1Ｂ:44:11:3A:B\u{200b}7", "**:**:**:**:**:B7"),
        ("DE8937040044053201３０\u{2060}00", "****3000"),
    ] {
        assert_eq!(cleaned(&mask, text), clean, "{text:?}");
    }
    let hash = scanner(Strategy::Hash);
    let hashed = cleaned(&hash, "ann@example.org");
    assert!(hashed.starts_with("<email_hash:"), "{hashed}");
    for same in ["an\u{200b}n@example.org", "ａｎｎ＠ｅｘａｍｐｌｅ．ｏｒｇ"] {
        assert_eq!(cleaned(&hash, same), hashed, "{same:?}");
        let blocked = scanner(Strategy::Block).clean(same, &mut Counts::new());
        assert_eq!(blocked, Err(Blocked("email".into())), "{same:?}");
    }
}

#[test]
fn what_the_plain_copy_hides_is_still_found_in_the_text() {
    let redact = scanner(Strategy::Redact);
    for (text, clean) in [
        ("ann@example.org\u{200b}5", "[REDACTED_EMAIL]\u{200b}5"),
        ("4111 1111 1111 1111\u{200b}x", "[REDACTED_CREDIT_CARD]\u{200b}x"),
        ("x\u{feff}10.0.0.1", "x\u{feff}[REDACTED_IP]"),
        ("123-45-6789４", "[REDACTED_US_SSN]４"),
    ] {
        assert_eq!(plain(text), cleaned(&redact, &plain(text)), "{text:?} is nothing without it");
        assert_eq!(cleaned(&redact, text), clean, "{text:?}");
    }
}

#[test]
fn a_key_ends_in_the_text_itself_or_not_at_all_if_it_begins_there() {
    let redact = scanner(Strategy::Redact);
    let begin = PEM.replace("-----BEGIN", "--\u{200b}---BEGIN");
    assert_eq!(cleaned(&redact, &format!("a {begin} more")), "a [REDACTED_PRIVATE_KEY] more");
    let end = PEM.replace("-----END", "--\u{200b}---END");
    assert_eq!(cleaned(&redact, &format!("a {end} more")), "a [REDACTED_PRIVATE_KEY]");
}

#[test]
fn texts_with_nothing_in_them_are_not_changed() {
    let redact = with_own(Strategy::Redact);
    for text in
        ["", "plain words, 42.", "Größe, Öl, naïve", "我在这里。", "안녕하세요", "Привет, мир"]
    {
        assert!(!folds(text) && Folded::of(text).is_none(), "{text}");
        assert_eq!(redact.clean(text, &mut Counts::new()), Ok(None));
    }
    for text in [
        "\u{feff}words",
        "a family: 👨\u{200d}👩\u{200d}👧, a heart: ❤\u{fe0f}",
        "می\u{200c}خواهم ۱۲ بار",
        "你好，世界！（是：12）",
        "soft\u{ad}ly, 10\u{a0}000 times … 5 ℃ №",
        "＠ and ａ＠ｂ",
    ] {
        assert!(folds(text), "{text:?}");
        assert_eq!(redact.clean(text, &mut Counts::new()), Ok(None), "{text:?}");
    }
}

#[test]
fn names_and_values_in_other_forms_are_cleaned() {
    let redact = scanner(Strategy::Redact);
    let mut value = json!({
        "ｔｏ": ["an\u{200b}n@example.org"],
        "ｐａｓｓｗｏｒｄ": "hunter2!",
        "tok\u{200b}en": "ｈｕｎｔｅｒ２！",
        "bob＠example.org": "好，12",
    });
    let clean = json!({
        "ｔｏ": ["[REDACTED_EMAIL]"],
        "ｐａｓｓｗｏｒｄ": "[REDACTED_PASSWORD]",
        "tok\u{200b}en": "[REDACTED_PASSWORD]",
        "[REDACTED_EMAIL]": "好，12",
    });
    let json = redact.clean_json(&value.to_string(), &mut Counts::new());
    let json = json.unwrap().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), clean);
    assert_eq!(redact.clean_value(&mut value, &mut Counts::new()), Ok(true));
    assert_eq!(value, clean);
    // Escaped, as some write it: there is nothing in the JSON itself but ASCII.
    let escaped = r#"{"to":"ann\uff20example\uff0eorg","a":"an\u200bn\u0040example.org"}"#;
    let json = redact.clean_json(escaped, &mut Counts::new()).unwrap();
    assert_eq!(json.as_deref(), Some(r#"{"to":"[REDACTED_EMAIL]","a":"[REDACTED_EMAIL]"}"#));
    assert!(redact.is_quiet("中文。") && !redact.is_quiet("ａ＠"));
    assert!(redact.is_quiet_name("größe") && !redact.is_quiet_name("ｔｏｋｅｎ"));
}

#[test]
fn every_decimal_digit_is_a_digit() {
    let decimal = Regex::new(r"^\p{Nd}$").unwrap();
    let mut letter = [0; 4];
    let all = ('\0'..=char::MAX).filter(|it| decimal.is_match(&*it.encode_utf8(&mut letter)));
    let all: Vec<char> = all.collect();
    assert!(all.len() > 600, "{}", all.len());
    for (at, digit) in all.into_iter().enumerate() {
        // They come in tens, in order.
        let value = char::from_digit(u32::try_from(at % 10).unwrap(), 10).unwrap();
        assert_eq!(plain(&digit.to_string()), value.to_string(), "{digit:?}");
    }
    for wide in '\u{ff01}'..='\u{ff5e}' {
        let ascii = char::from_u32(u32::from(wide) - 0xfee0).unwrap();
        assert_eq!(plain(&wide.to_string()), ascii.to_string());
    }
}

#[test]
fn other_forms_are_held_back_while_they_flow() {
    let redact = with_own(Strategy::Redact);
    let pieces =
        ["to ａｎ", "\u{200b}", "ｎ＠", "exam\u{ad}", "ple．org", "\u{feff}", " or ４１", "１１ "];
    let pieces = [&pieces[..], &["1111 １１１１ ", "١١١١", ", ok", " so"]].concat();
    let out = flown(&redact, &pieces);
    assert_eq!(out[..6].concat(), "to ");
    assert_eq!(out.concat(), "to [REDACTED_EMAIL]\u{feff} or [REDACTED_CREDIT_CARD], ok ");
    // Where nothing can be in it, it flows on.
    let out = flown(&redact, &["你好，世", "\u{200b}", "界", "\u{200b}\u{200b}"]);
    assert_eq!(out, ["你好，世", "\u{200b}", "界", "\u{200b}\u{200b}"]);
    let block = scanner(Strategy::Block);
    let out = flown(&block, &["hello ", "an\u{200b}", "n＠example.org", " and ", "more, ", "many"]);
    assert_eq!(out.concat(), "hello ");
}

fn ways() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => Just(0_u8), 2 => 1_u8..5], 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_stretch_of_the_copy_is_one_of_the_text(
        text in "[a-c0-2é中ａ＠４\u{660}\u{1d7ce}\u{ad}\u{200b}\u{feff}\u{fe0f}\u{e0020} ]{0,24}",
        cut in 0_usize..24,
    ) {
        let folded = Folded::copy(&text);
        // In two pieces it is the same.
        let cut = text.floor_char_boundary(cut);
        let mut pieces = Folded::copy(&text[..cut]);
        pieces.push(&text[cut..]);
        prop_assert_eq!(folded.text(), pieces.text());
        let copy = folded.text();
        let places = (0..=copy.len()).filter(|it| copy.is_char_boundary(*it));
        let places: Vec<usize> = places.collect();
        for (at, from) in places.iter().enumerate() {
            for to in &places[at + 1..] {
                let (start, end) = (folded.start(*from), folded.end(*to));
                prop_assert_eq!((start, end), (pieces.start(*from), pieces.end(*to)));
                prop_assert!(start < end, "{:?} {}..{}", text, from, to);
                prop_assert!(text.is_char_boundary(start) && text.is_char_boundary(end));
                let stretch = &text[start..end];
                let meant = plain(stretch);
                prop_assert_eq!(&*meant, &copy[*from..*to]);
                // It begins and ends with something that is seen.
                let seen = |it: char| !plain(&it.to_string()).is_empty();
                prop_assert!(stretch.starts_with(seen) && stretch.ends_with(seen));
                prop_assert_eq!((folded.place(start), folded.place(end)), (*from, *to));
            }
        }
    }

    #[test]
    fn a_disguise_changes_nothing_about_what_goes_out(
        parts in prop::collection::vec((part(), ways()), 0..20),
        sizes in prop::collection::vec(1_usize..24, 1..8),
        strategy in prop_oneof![Just(Strategy::Redact), Just(Strategy::Mask), Just(Strategy::Hash)],
    ) {
        let scanner = with_own(strategy);
        let text: String = parts.iter().map(|(part, ways)| disguised(part, ways)).collect();
        let clean = cleaned(&scanner, &text);
        let pieces = in_pieces(&text, &sizes);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let out = flown(&scanner, &pieces).concat();
        prop_assert!(clean.starts_with(&out), "{text:?}\nout   {out:?}\nclean {clean:?}");
    }

    #[test]
    fn what_is_planted_in_disguise_never_goes_out_and_the_words_around_it_do(
        // A key whose end is in disguise takes what follows with it: see above.
        items in prop::collection::vec(
            ("[a-z]{2,9}", planted().prop_filter("no key", |it| it != PEM), ways()), 1..6,
        ),
        sizes in prop::collection::vec(1_usize..24, 1..8),
    ) {
        let scanner = with_own(Strategy::Redact);
        let mut text = String::new();
        for (word, item, ways) in &items {
            text.push_str(&format!("{word} {} , ", disguised(item, ways)));
        }
        text.push_str("and so on until the end");
        let pieces = in_pieces(&text, &sizes);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let out = flown(&scanner, &pieces).concat();
        prop_assert!(out.ends_with("and so on until the "), "{out}");
        let (out, clean) = (plain(&out).into_owned(), plain(&cleaned(&scanner, &text)).into_owned());
        for (word, item, _) in &items {
            prop_assert!(!out.contains(item.as_str()), "{item}: {out}");
            prop_assert!(!clean.contains(item.as_str()), "{item}: {clean}");
            prop_assert!(out.contains(word.as_str()), "{word}: {out}");
        }
        prop_assert_eq!(out.matches("[REDACTED_").count(), items.len(), "{}", out);
    }
}
