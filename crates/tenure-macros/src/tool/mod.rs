//! `#[tool]`.
//!
//! First the attribute and the function are read and checked ([`args`], [`function`]), then the
//! code is written; writing cannot fail.

mod args;
mod function;
mod limit;

use crate::condition::conditions;
use crate::doc;
use args::Args;
use function::{Function, Param};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, Item, Visibility};

pub(crate) fn expand(
    arguments: TokenStream,
    item: TokenStream,
    root: &TokenStream,
) -> syn::Result<TokenStream> {
    let args: Args = syn::parse2(arguments)?;
    let Item::Fn(item) = syn::parse2(item)? else {
        return Err(Error::new(Span::call_site(), "`#[tool]` goes on a free `fn` or `async fn`"));
    };
    Ok(write(Function::new(item, &args)?, &args, root))
}

/// Names in the generated code start with two underscores: a tool may be called anything else, and
/// a unit struct cannot be shadowed by a variable.
fn write(mut function: Function, args: &Args, root: &TokenStream) -> TokenStream {
    let attributes = Attributes::take(&mut function);
    let visibility = std::mem::replace(&mut function.item.vis, Visibility::Inherited);
    let ident = &function.item.sig.ident;
    let spec = spec(&function, args, root);
    let read = read(&function.params, root);
    let call = call(&function, root);
    let Attributes { conditions, of_struct } = attributes;
    let item = &function.item;
    quote! {
        #(#conditions)*
        #(#of_struct)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #ident;

        #(#conditions)*
        const _: () = {
            #item

            #read

            #[allow(deprecated)]
            #[#root::__private::async_trait::async_trait]
            impl #root::tool::Tool for #ident {
                #spec
                #call
            }
        };
    }
}

/// What becomes of the attributes of the function that do not stay with it.
struct Attributes {
    /// Whether there is a tool at all.
    conditions: Vec<TokenStream>,
    /// What is said of the item that others see.
    of_struct: Vec<TokenStream>,
}

impl Attributes {
    fn take(function: &mut Function) -> Self {
        let all = std::mem::take(&mut function.item.attrs);
        let conditions = conditions(&all);
        let mut of_struct = Vec::new();
        if !all.iter().any(doc::is_comment) {
            let description = &function.description;
            of_struct.push(quote!(#[doc = #description]));
        }
        for attribute in all {
            let named = |name: &str| attribute.path().is_ident(name);
            if named("doc") || named("deprecated") {
                of_struct.push(quote!(#attribute));
                continue;
            }
            if named("allow") {
                of_struct.push(quote!(#attribute));
            }
            function.item.attrs.push(attribute);
        }
        Self { conditions, of_struct }
    }
}

/// The method `spec`.
fn spec(function: &Function, args: &Args, root: &TokenStream) -> TokenStream {
    let json = quote!(#root::__private::serde_json);
    let Function { name, description, params, .. } = function;
    let effect = args.effect.as_ref().map(|effect| quote!(.effect(#root::tool::Effect::#effect)));
    let limit = args.limit.map(|limit| {
        let (seconds, nanos) = (limit.as_secs(), limit.subsec_nanos());
        quote!(.limit(::core::time::Duration::new(#seconds, #nanos)))
    });
    let writes = args.writes.iter().map(|key| quote!(.writes(#key)));
    let count = params.len();
    let entries = params.iter().map(|Param { name, ty, description }| {
        let param = quote!(<#ty as #root::tool::ToolParam>);
        let schema = match description {
            Some(description) => quote!(__described(#param::schema(), #description)),
            None => quote!(#param::schema()),
        };
        quote!((#name, #schema, #param::missing().is_none()))
    });
    let described = params.iter().any(|param| param.description.is_some()).then(|| {
        quote! {
            fn __described(__schema: #json::Value, __description: &str) -> #json::Value {
                match __schema {
                    #json::Value::Object(mut __schema) => {
                        __schema.insert("description".to_owned(), __description.into());
                        #json::Value::Object(__schema)
                    }
                    // A schema may also be `true`, which has no room for a description.
                    __schema => #json::json!({
                        "description": __description,
                        "allOf": [__schema],
                    }),
                }
            }
        }
    });
    quote! {
        fn spec(&self) -> #root::tool::ToolSpec {
            #described
            let __params: [(&str, #json::Value, bool); #count] = [#(#entries),*];
            let __required: ::std::vec::Vec<&str> =
                __params.iter().filter(|__param| __param.2).map(|__param| __param.0).collect();
            let __properties: #json::Map<::std::string::String, #json::Value> = __params
                .iter()
                .map(|__param| (__param.0.to_owned(), __param.1.clone()))
                .collect();
            #root::tool::ToolSpec::new(#name, #description)
                .parameters(#json::json!({
                    "type": "object",
                    "properties": __properties,
                    "required": __required,
                    "additionalProperties": false,
                }))
                #effect
                #limit
                #(#writes)*
        }
    }
}

/// The method `call`.
fn call(function: &Function, root: &TokenStream) -> TokenStream {
    let ident = &function.item.sig.ident;
    let variables = variables(&function.params);
    let context = function.takes_context.then(|| quote!(__cx,));
    let awaited = function.item.sig.asyncness.map(|_| quote!(.await));
    // An answer that does not convert is reported where its type stands.
    let span = Span::call_site().located_at(function.returns.span);
    let output = quote_spanned!(span=> ::core::convert::Into::<#root::tool::ToolOutput>::into);
    let error = quote_spanned!(span=> ::core::convert::Into::<#root::tool::ToolError>::into);
    let answer = if function.returns.fallible {
        quote_spanned! {span=>
            match __answer {
                ::core::result::Result::Ok(__answer) => {
                    ::core::result::Result::Ok(#output(__answer))
                }
                ::core::result::Result::Err(__error) => {
                    ::core::result::Result::Err(#error(__error))
                }
            }
        }
    } else {
        quote_spanned!(span=> ::core::result::Result::Ok(#output(__answer)))
    };
    quote! {
        async fn call(
            &self,
            __cx: #root::context::ToolCx<'_>,
            __arguments: &#root::__private::serde_json::Value,
        ) -> ::core::result::Result<#root::tool::ToolOutput, #root::tool::ToolError> {
            let (#(#variables,)*) = __read(__arguments)?;
            let __answer = #ident(#context #(#variables),*) #awaited;
            #answer
        }
    }
}

/// The function that reads the arguments of a call, or says everything that is wrong with them.
fn read(params: &[Param], root: &TokenStream) -> TokenStream {
    let json = quote!(#root::__private::serde_json);
    let variables = variables(params);
    let types = params.iter().map(|param| &param.ty);
    let names: Vec<_> = params.iter().map(|param| &param.name).collect();
    let takes = if params.is_empty() {
        "no arguments".to_owned()
    } else {
        params.iter().map(|param| &*param.name).collect::<Vec<_>>().join(", ")
    };
    let unknown = format!("unknown argument `{{}}`; this tool takes {}", takes);
    let reads = params.iter().zip(&variables).map(|(Param { name, ty, .. }, variable)| {
        quote! {
            let #variable = __argument::<#ty>(
                __given,
                #name,
                <#ty as #root::tool::ToolParam>::missing,
                &mut __problems,
            );
        }
    });
    let argument = (!params.is_empty()).then(|| {
        quote! {
            fn __argument<__T: #root::__private::serde::de::DeserializeOwned>(
                __given: &#json::Map<::std::string::String, #json::Value>,
                __name: &str,
                __missing: fn() -> ::core::option::Option<__T>,
                __problems: &mut ::std::vec::Vec<::std::string::String>,
            ) -> ::core::option::Option<__T> {
                let __read = match __given.get(__name) {
                    ::core::option::Option::Some(__value) => __T::deserialize(__value)
                        .map_err(|__error| ::std::format!("argument `{__name}`: {__error}")),
                    ::core::option::Option::None => __missing()
                        .ok_or_else(|| ::std::format!("argument `{__name}` is missing")),
                };
                __read.map_err(|__problem| __problems.push(__problem)).ok()
            }
        }
    });
    quote! {
        fn __read(
            __arguments: &#json::Value,
        ) -> ::core::result::Result<(#(#types,)*), #root::tool::ToolError> {
            #argument
            let __none = #json::Map::new();
            let __given = match __arguments {
                #json::Value::Object(__given) => __given,
                #json::Value::Null => &__none,
                __other => {
                    return ::core::result::Result::Err(#root::tool::ToolError::new(
                        ::std::format!("the arguments have to be an object; found {__other}"),
                    ));
                }
            };
            let __known: &[&str] = &[#(#names),*];
            let mut __problems: ::std::vec::Vec<::std::string::String> = __given
                .keys()
                .filter(|__name| !__known.contains(&__name.as_str()))
                .map(|__name| ::std::format!(#unknown, __name))
                .collect();
            #(#reads)*
            match (__problems.is_empty(), #(#variables,)*) {
                (true, #(::core::option::Option::Some(#variables),)*) => {
                    ::core::result::Result::Ok((#(#variables,)*))
                }
                _ => ::core::result::Result::Err(#root::tool::ToolError::new(
                    __problems.join("\n"),
                )),
            }
        }
    }
}

fn variables(params: &[Param]) -> Vec<Ident> {
    (0..params.len()).map(|number| format_ident!("__argument_{number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::{File, ItemStruct, parse_quote};

    fn expanded(arguments: TokenStream, item: TokenStream) -> File {
        let tokens = expand(arguments, item, &quote!(::tenure)).expect("a tool");
        syn::parse2(tokens).expect("items")
    }

    #[test]
    fn the_struct_has_the_name_the_visibility_and_the_docs_of_the_function() {
        let file = expanded(
            quote!(effect = "keyed"),
            quote! {
                /// Adds.
                #[cfg(unix)]
                #[allow(dead_code)]
                #[deprecated]
                #[instrument]
                pub(crate) fn add(a: i64, b: i64) -> String { (a + b).to_string() }
            },
        );
        let expected: ItemStruct = parse_quote! {
            #[cfg(unix)]
            /// Adds.
            #[allow(dead_code)]
            #[deprecated]
            #[allow(non_camel_case_types)]
            #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
            pub(crate) struct add;
        };
        let [Item::Struct(made), Item::Const(rest)] = &file.items[..] else {
            panic!("a struct and what it implements");
        };
        assert_eq!(quote!(#made).to_string(), quote!(#expected).to_string());
        let rest = quote!(#rest).to_string();
        let function = quote! {
            #[cfg(unix)]
            #[allow(dead_code)]
            #[instrument]
            fn add(a: i64, b: i64) -> String
        };
        assert!(rest.starts_with("# [cfg (unix)] const _"), "{rest}");
        assert!(rest.contains(&function.to_string()), "{rest}");
    }

    #[test]
    fn a_description_of_its_own_documents_the_struct_too() {
        let file = expanded(
            quote!(description = "Adds."),
            quote!(
                pub fn add(a: i64) -> String {
                    a
                }
            ),
        );
        let made = &file.items[0];
        assert!(quote!(#made).to_string().contains("doc = \"Adds.\""));
    }

    #[test]
    fn only_functions_become_tools() {
        let refused = expand(
            TokenStream::new(),
            quote!(
                struct Add;
            ),
            &quote!(::tenure),
        );
        assert!(refused.expect_err("no function").to_string().contains("goes on a free `fn`"));
    }
}
