//! `#[lifecycle]`.

use crate::condition::conditions;
use crate::errors::Errors;
use crate::nearest::nearest;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Error, ImplItem, ImplItemFn, Item, ItemImpl, ReturnType};

/// The points, as the trait spells them, and their variants of `Point`.
const POINTS: [(&str, &str); 11] = [
    ("on_start", "OnStart"),
    ("on_shutdown", "OnShutdown"),
    ("before_chat", "BeforeChat"),
    ("after_chat", "AfterChat"),
    ("before_agent", "BeforeAgent"),
    ("after_agent", "AfterAgent"),
    ("before_model", "BeforeModel"),
    ("wrap_model_call", "WrapModelCall"),
    ("after_model", "AfterModel"),
    ("wrap_tool_call", "WrapToolCall"),
    ("on_transition", "OnTransition"),
];

/// The functions of the trait that are not points.
const OTHERS: [&str; 2] = ["points", "name"];

pub(crate) fn expand(arguments: TokenStream, item: TokenStream, root: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    if !arguments.is_empty() {
        errors.push(Error::new_spanned(arguments, "`#[lifecycle]` takes no arguments"));
    }
    // In case of an error the item is still there, less what is wrong in it, so that the rest of
    // the program does not complain about its absence as well.
    let expanded = match errors.take(lifecycle_impl(item.clone())) {
        Some(mut hooks) => {
            refuse_own_async_trait(&mut hooks, &mut errors);
            refuse_what_is_no_hook(&mut hooks, &mut errors);
            hooks.items.extend(points(&hooks, root));
            quote! {
                #[#root::__private::async_trait::async_trait]
                #hooks
            }
        }
        None => item,
    };
    let errors = errors.into_option().map(Error::into_compile_error);
    quote!(#expanded #errors)
}

/// The item, if it is an `impl AgentLifecycle for ...`.
fn lifecycle_impl(item: TokenStream) -> syn::Result<ItemImpl> {
    let Item::Impl(item) = syn::parse2(item)? else {
        return Err(Error::new(
            Span::call_site(),
            "`#[lifecycle]` goes on an `impl AgentLifecycle for ...`",
        ));
    };
    let Some((negative, path, _)) = &item.trait_ else {
        let of = item.self_ty.to_token_stream();
        return Err(Error::new_spanned(
            &item.self_ty,
            format!("`#[lifecycle]` goes on a trait's `impl`: `impl AgentLifecycle for {of}`"),
        ));
    };
    let named = path.segments.last().is_some_and(|segment| segment.ident == "AgentLifecycle");
    if negative.is_some() || !named {
        return Err(Error::new_spanned(
            path,
            "`#[lifecycle]` goes on an `impl` of `AgentLifecycle`, and of no other trait",
        ));
    }
    Ok(item)
}

fn refuse_own_async_trait(hooks: &mut ItemImpl, errors: &mut Errors) {
    hooks.attrs.retain(|attribute| {
        let last = attribute.path().segments.last();
        let own = last.is_some_and(|segment| segment.ident == "async_trait");
        if own {
            errors.push(Error::new_spanned(
                attribute,
                "`#[lifecycle]` applies `#[async_trait]` itself; remove this one",
            ));
        }
        !own
    });
}

/// Removes the functions that the trait does not have, or has otherwise.
fn refuse_what_is_no_hook(hooks: &mut ItemImpl, errors: &mut Errors) {
    hooks.items.retain(|item| match item {
        ImplItem::Fn(function) => errors.take(check(function)).is_some(),
        _ => true,
    });
}

fn check(function: &ImplItemFn) -> syn::Result<()> {
    let name = &function.sig.ident;
    if OTHERS.iter().any(|other| name == other) {
        return Ok(());
    }
    if variant(name).is_none() {
        return Err(Error::new(name.span(), unknown(&name.to_string())));
    }
    if function.sig.asyncness.is_none() {
        let hint = match &function.sig.output {
            ReturnType::Type(_, output) if output.to_token_stream().to_string().contains("Pin") => {
                "`#[lifecycle]` applies `#[async_trait]` itself; remove yours"
            }
            _ => "write `async fn`",
        };
        return Err(Error::new_spanned(
            function.sig.fn_token,
            format!("the hook `{name}` is not `async`; {hint}"),
        ));
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let points = POINTS.map(|(point, _)| point);
    match nearest(name, points.into_iter().chain(OTHERS)) {
        Some(meant) => format!("`{name}` is not a hook point; did you mean `{meant}`?"),
        None => format!(
            "`{name}` is not a hook point; the points are {}. Other functions go in an `impl` of \
             their own",
            points.join(", ")
        ),
    }
}

fn variant(name: &Ident) -> Option<Ident> {
    let (_, variant) = POINTS.into_iter().find(|(point, _)| name == point)?;
    Some(format_ident!("{variant}"))
}

/// The method `points`, unless there is one, or nobody can say what it would be.
fn points(hooks: &ItemImpl, root: &TokenStream) -> Option<ImplItem> {
    let mut bits = Vec::new();
    for item in &hooks.items {
        match item {
            ImplItem::Fn(function) if function.sig.ident == "points" => return None,
            ImplItem::Fn(function) => {
                let Some(variant) = variant(&function.sig.ident) else {
                    continue;
                };
                let conditions = conditions(&function.attrs);
                bits.push(quote! {
                    #(#conditions)*
                    let points = points.with(#root::hook::Point::#variant);
                });
            }
            ImplItem::Macro(_) => return None,
            _ => {}
        }
    }
    Some(ImplItem::Verbatim(quote! {
        fn points(&self) -> #root::hook::Points {
            let points = #root::hook::Points::NONE;
            #(#bits)*
            points
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: TokenStream) -> String {
        expand(TokenStream::new(), item, &quote!(::tenure)).to_string()
    }

    fn with_points(head: TokenStream, functions: TokenStream, bits: TokenStream) -> String {
        let expected = quote! {
            #[::tenure::__private::async_trait::async_trait]
            #head {
                #functions
                fn points(&self) -> ::tenure::hook::Points {
                    let points = ::tenure::hook::Points::NONE;
                    #bits
                    points
                }
            }
        };
        expected.to_string()
    }

    #[test]
    fn the_mask_has_exactly_the_functions_of_the_impl() {
        let head = quote!(impl AgentLifecycle for Audit);
        let functions = quote! {
            fn name(&self) -> &str { "audit" }
            async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> { Ok(()) }
            async fn wrap_tool_call(&self) {}
        };
        let bits = quote! {
            let points = points.with(::tenure::hook::Point::OnStart);
            let points = points.with(::tenure::hook::Point::WrapToolCall);
        };
        assert_eq!(expanded(quote!(#head { #functions })), with_points(head, functions, bits));
    }

    #[test]
    fn every_point_has_its_bit() {
        for (name, variant) in POINTS {
            let (name, variant) = (format_ident!("{name}"), format_ident!("{variant}"));
            let head = quote!(impl AgentLifecycle for One);
            let functions = quote!(async fn #name(&self) {});
            let bits = quote!(let points = points.with(::tenure::hook::Point::#variant););
            assert_eq!(expanded(quote!(#head { #functions })), with_points(head, functions, bits));
        }
    }

    #[test]
    fn conditions_of_a_function_are_those_of_its_bit() {
        let head = quote!(impl AgentLifecycle for Audit);
        let functions = quote! {
            /// Not a condition.
            #[cfg(unix)]
            #[cfg(feature = "audit")]
            async fn on_start(&self) {}
            #[cfg(not(unix))]
            async fn on_start(&self) {}
        };
        let bits = quote! {
            #[cfg(unix)]
            #[cfg(feature = "audit")]
            let points = points.with(::tenure::hook::Point::OnStart);
            #[cfg(not(unix))]
            let points = points.with(::tenure::hook::Point::OnStart);
        };
        assert_eq!(expanded(quote!(#head { #functions })), with_points(head, functions, bits));
    }

    #[test]
    fn generics_bounds_and_attributes_stay() {
        let head = quote! {
            #[allow(dead_code)]
            impl<T: Sink, const N: usize> tenure::hook::AgentLifecycle for Audit<T, N>
            where
                T: Send + Sync + 'static
        };
        assert_eq!(
            expanded(quote!(#head {})),
            with_points(head, TokenStream::new(), TokenStream::new())
        );
    }

    #[test]
    fn own_points_and_macro_calls_leave_the_mask_alone() {
        for functions in [
            quote!(
                fn points(&self) -> Points {
                    Points::NONE
                }
                async fn on_start(&self) {}
            ),
            quote!(async fn on_start(&self) {} hooks!();),
        ] {
            let item = quote!(impl AgentLifecycle for Audit { #functions });
            let expected = quote! {
                #[::tenure::__private::async_trait::async_trait]
                #item
            };
            assert_eq!(expanded(item), expected.to_string());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (item, expected) in [
            (
                quote!(
                    struct Audit;
                ),
                "goes on an `impl AgentLifecycle for ...`",
            ),
            (quote!(impl Audit {}), "`impl AgentLifecycle for Audit`"),
            (quote!(impl Tool for Audit {}), "and of no other trait"),
            (quote!(impl !AgentLifecycle for Audit {}), "and of no other trait"),
            (
                quote!(impl AgentLifecycle for Audit { async fn on_strat(&self) {} }),
                "`on_strat` is not a hook point; did you mean `on_start`?",
            ),
            (
                quote!(impl AgentLifecycle for Audit { async fn after_tool_call(&self) {} }),
                "did you mean `wrap_tool_call`?",
            ),
            (
                quote!(impl AgentLifecycle for Audit { fn log(&self) {} }),
                "`log` is not a hook point; the points are on_start, on_shutdown, ",
            ),
            (
                quote!(impl AgentLifecycle for Audit { fn on_start(&self) {} }),
                "the hook `on_start` is not `async`; write `async fn`",
            ),
            (
                quote! {
                    impl AgentLifecycle for Audit {
                        fn on_start<'a>(&'a self) -> ::core::pin::Pin<Box<dyn Future>> {}
                    }
                },
                "the hook `on_start` is not `async`; `#[lifecycle]` applies `#[async_trait]`",
            ),
            (
                quote!(
                    #[async_trait]
                    impl AgentLifecycle for Audit {}
                ),
                "applies `#[async_trait]` itself; remove this one",
            ),
        ] {
            let expanded = expanded(item);
            assert!(expanded.contains("compile_error"), "{expanded}");
            assert!(expanded.contains(expected), "{expanded}");
        }
    }

    #[test]
    fn every_error_is_reported_and_the_rest_of_the_impl_remains() {
        let expanded = expand(
            quote!(only = "on_start"),
            quote! {
                impl AgentLifecycle for Audit {
                    async fn on_strat(&self) {}
                    fn on_shutdown(&self) {}
                    async fn before_chat(&self) {}
                }
            },
            &quote!(::tenure),
        );
        let text = expanded.to_string();
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
        assert!(text.contains("async fn before_chat"), "{text}");
        assert!(!text.contains("fn on_shutdown"), "{text}");
    }
}
