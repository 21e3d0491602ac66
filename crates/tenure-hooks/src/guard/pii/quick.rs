//! A first look at a text: whether anything can be in it at all.
//!
//! Most texts are short and hold nothing. One pass tells what a text is made of, and whatever is
//! looked for needs some of that, so that hardly any detector has to look.

use super::detector::Detector;

const AT: u16 = 1;
const COLON: u16 = 1 << 1;
const EQUALS: u16 = 1 << 2;
const DOT: u16 = 1 << 3;
const HYPHEN: u16 = 1 << 4;
const LINE: u16 = 1 << 5;
const LETTER_A: u16 = 1 << 6;
const LETTER_B: u16 = 1 << 7;
const LETTER_J: u16 = 1 << 8;
const DIGIT: u16 = 1 << 9;
const CAPITAL: u16 = 1 << 10;

const KINDS: [u16; 256] = {
    let mut kinds = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        if byte.is_ascii_digit() {
            kinds[at] |= DIGIT;
        }
        if byte.is_ascii_uppercase() {
            kinds[at] |= CAPITAL;
        }
        kinds[at] |= match byte {
            b'@' => AT,
            b':' => COLON,
            b'=' => EQUALS,
            b'.' => DOT,
            b'-' => HYPHEN,
            b'_' => LINE,
            b'A' => LETTER_A,
            b'b' | b'B' => LETTER_B,
            b'J' => LETTER_J,
            _ => 0,
        };
        at += 1;
    }
    kinds
};

/// What a text is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    signs: u16,
    digits: usize,
    capitals: usize,
}

impl Made {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut made = Self::default();
        for byte in text {
            let kind = KINDS[usize::from(*byte)];
            made.signs |= kind;
            made.digits += usize::from(kind & DIGIT != 0);
            made.capitals += usize::from(kind & CAPITAL != 0);
        }
        made
    }

    fn has(&self, signs: u16) -> bool {
        self.signs & signs != 0
    }

    /// Whether the detector may find anything. What it finds has all of this in it.
    pub(super) fn may_have(&self, detector: Detector) -> bool {
        match detector {
            Detector::Email => self.has(AT),
            Detector::CreditCard => self.digits >= 13,
            // Four numbers with points among them; or colons, and a digit.
            Detector::Ip => self.digits >= 4 && self.has(DOT) || self.digits > 0 && self.has(COLON),
            Detector::MacAddress => self.has(COLON | HYPHEN),
            Detector::Url => self.has(COLON | DOT),
            Detector::Phone => self.digits >= 8,
            Detector::Iban => self.capitals >= 2 && self.digits >= 2,
            Detector::UsSsn => self.digits >= 9,
            // Every key has a digit, and one of these in the way it begins.
            Detector::ApiKey => self.digits > 0 && self.has(HYPHEN | LINE | LETTER_A),
            Detector::Jwt => self.has(LETTER_J) && self.has(DOT),
            Detector::PrivateKey => self.has(HYPHEN),
            Detector::BearerToken => self.digits > 0 && self.has(LETTER_B),
            Detector::Password => self.has(COLON | EQUALS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::Config;

    fn finds(detector: Detector, text: &str) -> bool {
        let mut is_found = false;
        detector.find(text, 0, &mut |_, _| is_found = true);
        is_found
    }

    /// One of everything, as short as it can be.
    const LEAST: [(Detector, &str); 27] = [
        (Detector::Email, "a@b.cd"),
        (Detector::CreditCard, "4222222222222"),
        (Detector::Ip, "1.1.1.1"),
        (Detector::Ip, "::1"),
        (Detector::MacAddress, "aa:bb:cc:dd:ee:ff"),
        (Detector::MacAddress, "aa-bb-cc-dd-ee-ff"),
        (Detector::Url, "ws://a"),
        (Detector::Url, "www.a"),
        (Detector::Phone, "+12345678"),
        (Detector::Phone, "212 555 1234"),
        (Detector::Iban, "NO9386011117947"),
        (Detector::UsSsn, "123 45 6789"),
        (Detector::ApiKey, "sk-aaaaaaaaaaaaaaaaaaa1"),
        (Detector::ApiKey, "sk_live_aaaaaaaaaaaaaaa1"),
        (Detector::ApiKey, "whsec_aaaaaaaaaaaaaaa1"),
        (Detector::ApiKey, "AKIAaaaaaaaaaaaaaaa1"),
        (Detector::ApiKey, "ASIAaaaaaaaaaaaaaaa1"),
        (Detector::ApiKey, "AIzaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"),
        (Detector::ApiKey, "xoxb-aaaaaaaaa1"),
        (Detector::ApiKey, "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"),
        (Detector::Jwt, "eyJaaaaaaaa.a"),
        (Detector::PrivateKey, "-----BEGIN PRIVATE KEY-----"),
        (Detector::BearerToken, "bearer aaaaaaaaaaaaaaa1"),
        (Detector::BearerToken, "BASIC aaaaaaaaaaaaaaa1"),
        (Detector::Password, "pwd=abcde1"),
        (Detector::Password, "token: abcde1"),
        (Detector::Password, "secret=>'abcde1'"),
    ];

    #[test]
    fn whatever_a_detector_finds_gets_past_the_first_look() {
        for (detector, text) in LEAST {
            assert!(finds(detector, text), "{detector:?} {text}");
            assert!(Made::of(text.as_bytes()).may_have(detector), "{detector:?} {text}");
        }
        for detector in Detector::ALL {
            assert!(LEAST.iter().any(|(it, _)| *it == detector), "{detector:?}");
        }
    }

    #[test]
    fn most_sentences_hold_nothing() {
        for text in ["The value of alpha is 42.", "What is it? 0000001f", "key", ""] {
            let made = Made::of(text.as_bytes());
            let known = Detector::ALL.into_iter().filter(|it| *it != Detector::Url);
            let may: Vec<_> = known.filter(|detector| made.may_have(*detector)).collect();
            assert!(may.is_empty(), "{text}: {may:?}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 3_000, failure_persistence: None, ..Config::default() })]

        /// Made of pieces of what is looked for, and of signs.
        #[test]
        fn no_detector_finds_what_the_first_look_rules_out(
            pieces in prop::collection::vec(
                prop_oneof![
                    (0..LEAST.len(), 0_usize..20, 1_usize..24).prop_map(|(at, from, length)| {
                        LEAST[at].1.chars().skip(from).take(length).collect::<String>()
                    }),
                    "[ -~]{1,3}",
                    "[0-9]{1,5}",
                    "[.:@=+() -]",
                ],
                1..8,
            )
        ) {
            let text = pieces.concat();
            let made = Made::of(text.as_bytes());
            for detector in Detector::ALL {
                prop_assert!(
                    made.may_have(detector) || !finds(detector, &text),
                    "{:?} in {:?}", detector, text
                );
            }
        }
    }
}
