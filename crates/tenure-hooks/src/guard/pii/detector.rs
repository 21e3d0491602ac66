//! What is looked for, and what is done with it.

use super::personal::{self, Found};
use super::secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::secret::{ArmourBody, Shape};

/// Something that is looked for in texts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Detector {
    /// An e-mail address.
    Email,
    /// The number of a payment card: 13 to 19 digits with a check digit that is right.
    CreditCard,
    /// An IP address, version 4 or 6.
    Ip,
    /// The address of a network card.
    MacAddress,
    /// A web address, with its scheme or with `www.`.
    Url,
    /// A telephone number: with a plus and its country, or an American one.
    Phone,
    /// An international account number whose check digits are right.
    Iban,
    /// An American social security number.
    UsSsn,
    /// A key of a well-known service, by the way it begins: `sk-`, `AKIA`, `ghp_`, `xoxb-`.
    ApiKey,
    /// A JSON web token.
    Jwt,
    /// A private key in its armour (PEM), all of it.
    PrivateKey,
    /// What follows `Bearer` or `Basic`.
    BearerToken,
    /// What is assigned to something by the name of `password`, `secret`, `token`, `api_key` and the
    /// like, if it does not look like a word.
    Password,
}

impl Detector {
    /// Every detector.
    pub const ALL: [Self; 13] = [
        Self::Email,
        Self::CreditCard,
        Self::Ip,
        Self::MacAddress,
        Self::Url,
        Self::Phone,
        Self::Iban,
        Self::UsSsn,
        Self::ApiKey,
        Self::Jwt,
        Self::PrivateKey,
        Self::BearerToken,
        Self::Password,
    ];

    /// Those for what opens something.
    pub const SECRETS: [Self; 5] =
        [Self::ApiKey, Self::Jwt, Self::PrivateKey, Self::BearerToken, Self::Password];

    /// The detector's name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::CreditCard => "credit_card",
            Self::Ip => "ip",
            Self::MacAddress => "mac_address",
            Self::Url => "url",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::UsSsn => "us_ssn",
            Self::ApiKey => "api_key",
            Self::Jwt => "jwt",
            Self::PrivateKey => "private_key",
            Self::BearerToken => "bearer_token",
            Self::Password => "password",
        }
    }

    /// Everything of the kind that begins at `from` or behind it.
    pub(super) fn find(self, text: &str, from: usize, found: Found<'_>) {
        let bytes = text.as_bytes();
        match self {
            Self::Email => personal::emails(text, from, found),
            Self::CreditCard => personal::credit_cards(bytes, from, found),
            Self::Ip => personal::ips(bytes, from, found),
            Self::MacAddress => personal::mac_addresses(bytes, from, found),
            Self::Url => personal::urls(text, from, found),
            Self::Phone => personal::phones(bytes, from, found),
            Self::Iban => personal::ibans(bytes, from, found),
            Self::UsSsn => personal::us_ssns(bytes, from, found),
            Self::ApiKey => Shape::ApiKey.find(text, from, found),
            Self::Jwt => Shape::Jwt.find(text, from, found),
            Self::PrivateKey => ArmourBody::Any.find(text, from, found),
            Self::BearerToken => Shape::BearerToken.find(text, from, found),
            Self::Password => secret::passwords(bytes, from, found),
        }
    }

    /// Where something begins that may still become one of the kind, or a longer one, when the text
    /// goes on; the end of the text, if nothing does.
    pub(super) fn open(self, text: &str, from: usize) -> usize {
        let end = text.len();
        let bytes = text.as_bytes();
        match self {
            Self::CreditCard | Self::Phone | Self::UsSsn => {
                let of_numbers = |byte: u8| byte.is_ascii_digit() || b" ()+.-".contains(&byte);
                let run = tail(bytes, from, 64, of_numbers);
                let begins = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'(');
                bytes[run..].iter().position(begins).map_or(end, |at| run + at)
            }
            Self::Iban => {
                let of_it = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ';
                let run = tail(bytes, from, 72, of_it);
                (run..end).find(|at| personal::may_be_iban(bytes, *at)).unwrap_or(end)
            }
            Self::PrivateKey => {
                let dashes = word(text, from, 16);
                ArmourBody::Any.open(text, from).unwrap_or(end).min(dashes)
            }
            Self::Email | Self::Ip | Self::MacAddress => word(text, from, 1024),
            // These may be of any length, and the last of them is as secret as the first.
            Self::Url | Self::ApiKey | Self::Jwt | Self::BearerToken | Self::Password => {
                word(text, from, usize::MAX)
            }
        }
    }

    /// What is left to be seen of it: as much as tells people apart, and no more.
    pub(super) fn mask(self, value: &str) -> String {
        let last = |count: usize| {
            let from = value.char_indices().rev().nth(count - 1).map_or(0, |(at, _)| at);
            &value[from..]
        };
        let long = value.chars().count() > 8;
        match self {
            Self::Email => {
                format!("****@{}", value.rsplit_once('@').map_or("****", |(_, host)| host))
            }
            Self::CreditCard => match value.bytes().find(|byte| matches!(byte, b' ' | b'-')) {
                Some(sign) => {
                    let digits: String = value.chars().filter(char::is_ascii_digit).collect();
                    let sign = char::from(sign);
                    let last = &digits[digits.len() - 4..];
                    format!("****{sign}****{sign}****{sign}{last}")
                }
                None => format!("{}{}", "*".repeat(value.len() - 4), last(4)),
            },
            Self::Ip => match value.rsplit_once('.') {
                Some((_, octet)) if !value.contains(':') => format!("*.*.*.{octet}"),
                _ => "****".to_owned(),
            },
            Self::MacAddress => {
                let sign = value.get(2..3).unwrap_or(":");
                format!("{}{}", format!("**{sign}").repeat(5), last(2))
            }
            Self::Url => "[MASKED_URL]".to_owned(),
            Self::Phone | Self::Iban | Self::UsSsn | Self::ApiKey if long => {
                format!("****{}", last(4))
            }
            _ => "****".to_owned(),
        }
    }
}

/// Where the last stretch of bytes that fit begins; at most so many are looked at.
fn tail(text: &[u8], from: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = &text[from..];
    text.len() - rest.iter().rev().take(most).take_while(|byte| fits(**byte)).count()
}

/// Where the last word begins: what has no blanks in it, and nothing but Latin letters and signs.
fn word(text: &str, from: usize, most: usize) -> usize {
    let of_word = |c: char| c.is_ascii_graphic() || personal::is_latin(c);
    let rest = text[from..].char_indices().rev();
    let start = rest.take_while(|(_, c)| of_word(*c)).last();
    start
        .map_or(text.len(), |(at, _)| from + at)
        .max(text.ceil_char_boundary(text.len().saturating_sub(most)))
}

/// What is done with what was found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Some of it is left: the last four digits, the host of an e-mail address.
    Mask,
    /// `<email_hash:0a1b2c3d4e5f>` stands in its place: the same for the same value, so that things
    /// can still be told apart.
    Hash,
    /// `[REDACTED_EMAIL]` stands in its place.
    #[default]
    Redact,
    /// The text is refused.
    Block,
}
