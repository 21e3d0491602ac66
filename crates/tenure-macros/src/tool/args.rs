//! The arguments of the attribute.

use super::limit;
use crate::nearest::nearest;
use proc_macro2::Ident;
use std::time::Duration;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Token, bracketed};

/// What a crash means for a call under way; the strings and variants of `Effect`.
const EFFECTS: [(&str, &str); 3] =
    [("idempotent", "Idempotent"), ("keyed", "Keyed"), ("at_most_once", "AtMostOnce")];

const NAMES: [&str; 5] = ["name", "description", "effect", "limit", "writes"];

/// What stands in `#[tool(...)]`, checked.
#[derive(Default)]
pub(super) struct Args {
    pub(super) name: Option<LitStr>,
    pub(super) description: Option<LitStr>,
    /// The variant of `Effect`.
    pub(super) effect: Option<Ident>,
    pub(super) limit: Option<Duration>,
    pub(super) writes: Vec<LitStr>,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut args = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            if !NAMES.iter().any(|known| name == known) {
                return Err(unknown(&name));
            }
            if seen.contains(&name) {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            input.parse::<Token![=]>()?;
            match name.to_string().as_str() {
                "name" => args.name = Some(tool_name(input.parse()?)?),
                "description" => args.description = Some(not_empty(input.parse()?)?),
                "effect" => args.effect = Some(effect(&input.parse()?)?),
                "limit" => args.limit = Some(duration(&input.parse()?)?),
                _ => args.writes = keys(input)?,
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(args)
    }
}

fn unknown(name: &Ident) -> Error {
    let hint = match nearest(&name.to_string(), NAMES) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it takes {}", NAMES.join(", ")),
    };
    Error::new(name.span(), format!("`{name}` is not an argument of `#[tool]`; {hint}"))
}

/// Whether every provider of models accepts the name of the tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    let accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(accepted)
}

fn tool_name(name: LitStr) -> syn::Result<LitStr> {
    if is_tool_name(&name.value()) {
        return Ok(name);
    }
    let expected = "a tool's name has 1 to 64 letters, digits, `_` and `-`";
    Err(Error::new(name.span(), expected))
}

fn not_empty(text: LitStr) -> syn::Result<LitStr> {
    if text.value().trim().is_empty() {
        return Err(Error::new(text.span(), "this must not be empty"));
    }
    Ok(text)
}

fn effect(text: &LitStr) -> syn::Result<Ident> {
    let value = text.value();
    let names = EFFECTS.map(|(name, _)| name);
    match EFFECTS.into_iter().find(|(name, _)| *name == value) {
        Some((_, variant)) => Ok(Ident::new(variant, text.span())),
        None => {
            let meant = nearest(&value, names).map(|meant| format!("; did you mean \"{meant}\"?"));
            let meant = meant.unwrap_or_default();
            let [first, second, third] = names;
            Err(Error::new(
                text.span(),
                format!("an effect is \"{first}\", \"{second}\" or \"{third}\"{meant}"),
            ))
        }
    }
}

fn duration(text: &LitStr) -> syn::Result<Duration> {
    limit::parse(&text.value()).map_err(|message| Error::new(text.span(), message))
}

fn keys(input: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    let content;
    bracketed!(content in input);
    let mut keys: Vec<LitStr> = Vec::new();
    while !content.is_empty() {
        let key = not_empty(content.parse()?)?;
        if keys.iter().any(|other| other.value() == key.value()) {
            return Err(Error::new(key.span(), format!("`{}` is given twice", key.value())));
        }
        keys.push(key);
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_is_read() {
        let args: Args = syn::parse_str(
            r#"name = "get-weather", description = "d", effect = "keyed", limit = "250ms",
               writes = ["seen", "plan"],"#,
        )
        .expect("valid arguments");
        assert_eq!(args.name.expect("name").value(), "get-weather");
        assert_eq!(args.description.expect("description").value(), "d");
        assert_eq!(args.effect.expect("effect"), "Keyed");
        assert_eq!(args.limit, Some(Duration::from_millis(250)));
        assert_eq!(args.writes.iter().map(LitStr::value).collect::<Vec<_>>(), ["seen", "plan"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = format!("name = \"{}\"", "x".repeat(65));
        for (source, expected) in [
            (r#"nane = "x""#, "`nane` is not an argument of `#[tool]`; did you mean `name`?"),
            ("idempotent", "it takes name, description, effect, limit, writes"),
            ("type = 1", "`type` is not an argument"),
            (r#"name = "a", name = "b""#, "`name` is given twice"),
            (r#"name = """#, "1 to 64 letters"),
            (r#"name = "get weather""#, "1 to 64 letters"),
            (long.as_str(), "1 to 64 letters"),
            (r#"description = " ""#, "must not be empty"),
            (r#"effect = "idempotant""#, "did you mean \"idempotent\"?"),
            (r#"effect = "pure""#, "an effect is \"idempotent\", \"keyed\" or \"at_most_once\""),
            ("effect = Keyed", "expected string literal"),
            (r#"limit = "0s""#, "more than zero"),
            ("limit = 5", "expected string literal"),
            (r#"writes = "seen""#, "expected square brackets"),
            (r#"writes = [""]"#, "must not be empty"),
            (r#"writes = ["a", "a"]"#, "`a` is given twice"),
            (r#"name = "a" limit = "1s""#, "expected `,`"),
            ("name", "expected `=`"),
        ] {
            let error = syn::parse_str::<Args>(source).err().expect(source).to_string();
            assert!(error.contains(expected), "{source}: {error}");
        }
    }
}
