//! Which attributes decide whether an item exists at all.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// The `#[cfg(...)]` attributes among `attributes`, also those behind a `#[cfg_attr(...)]`, to be
/// put on whatever must exist exactly when the item does.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<TokenStream> {
    let metas = attributes.iter().filter_map(|attribute| condition(&attribute.meta));
    metas.map(|meta| quote!(#[#meta])).collect()
}

fn condition(meta: &Meta) -> Option<TokenStream> {
    if meta.path().is_ident("cfg") {
        return Some(quote!(#meta));
    }
    let Meta::List(list) = meta else { return None };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    // What cannot be parsed is not a `cfg`; rustc will say what is wrong with it.
    let (when, then) = predicate_and_metas.parse2(list.tokens.clone()).ok()?;
    let then: Vec<_> = then.iter().filter_map(condition).collect();
    (!then.is_empty()).then(|| quote!(cfg_attr(#when, #(#then),*)))
}

fn predicate_and_metas(
    input: ParseStream<'_>,
) -> syn::Result<(TokenStream, Punctuated<Meta, Token![,]>)> {
    let mut predicate = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        predicate.extend([input.parse::<TokenTree>()?]);
    }
    input.parse::<Token![,]>()?;
    Ok((predicate, Punctuated::parse_terminated(input)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn of(attributes: &[Attribute]) -> Vec<String> {
        conditions(attributes).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_what_removes_an_item_is_a_condition() {
        let attributes: [Attribute; 4] = [
            parse_quote!(#[doc = "text"]),
            parse_quote!(#[cfg(feature = "a")]),
            parse_quote!(#[cfg_attr(test, inline, cfg(unix))]),
            parse_quote!(#[cfg_attr(test, inline)]),
        ];
        let expected = [quote!(#[cfg(feature = "a")]), quote!(#[cfg_attr(test, cfg(unix))])]
            .map(|t| t.to_string());
        assert_eq!(of(&attributes), expected);
    }

    #[test]
    fn predicates_may_be_nested_and_literal() {
        let attributes: [Attribute; 2] = [
            parse_quote!(#[cfg_attr(all(unix, not(test)), cfg_attr(true, cfg(any())))]),
            parse_quote!(#[cfg_attr(true)]),
        ];
        let expected = quote!(#[cfg_attr(all(unix, not(test)), cfg_attr(true, cfg(any())))]);
        assert_eq!(of(&attributes), [expected.to_string()]);
    }
}
