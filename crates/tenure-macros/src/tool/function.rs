//! The function that becomes a tool: what is taken from it, and what is refused.

use super::args::{Args, is_tool_name};
use crate::doc;
use crate::errors::Errors;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Attribute, Error, FnArg, GenericParam, ItemFn, Pat, PatType, ReturnType, Signature, Type,
    TypeImplTrait,
};

/// A function that can be a tool.
pub(super) struct Function {
    /// The function, without the doc comments of its parameters, which rustc refuses.
    pub(super) item: ItemFn,
    /// The name that the model calls it by.
    pub(super) name: String,
    /// What the model reads of it.
    pub(super) description: String,
    /// Whether the first parameter is the context of the call.
    pub(super) takes_context: bool,
    /// What the model has to give.
    pub(super) params: Vec<Param>,
    pub(super) returns: Returns,
}

/// A parameter that the model gives.
pub(super) struct Param {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) description: Option<String>,
}

/// How the function answers.
pub(super) struct Returns {
    pub(super) fallible: bool,
    pub(super) span: Span,
}

impl Function {
    /// Checks the whole function, and reports everything that is wrong with it.
    pub(super) fn new(mut item: ItemFn, args: &Args) -> syn::Result<Self> {
        let mut errors = Errors::default();
        refuse_qualifiers(&item.sig, &mut errors);
        let name = errors.take(name(&item.sig, args));
        let description = errors.take(description(&item, args));
        let returns = errors.take(returns(&item.sig));
        let mut takes_context = false;
        let mut params = Vec::new();
        for (position, input) in item.sig.inputs.iter_mut().enumerate() {
            match errors.take(param(position, input)) {
                Some(Some(param)) => params.push(param),
                Some(None) => takes_context = true,
                None => {}
            }
        }
        match (errors.into_option(), name, description, returns) {
            (None, Some(name), Some(description), Some(returns)) => {
                Ok(Self { item, name, description, takes_context, params, returns })
            }
            (errors, ..) => Err(errors.expect("a part is missing only after its error")),
        }
    }
}

fn refuse_qualifiers(signature: &Signature, errors: &mut Errors) {
    let qualifiers = [
        signature.constness.as_ref().map(Spanned::span),
        signature.unsafety.as_ref().map(Spanned::span),
        signature.abi.as_ref().map(Spanned::span),
        signature.variadic.as_ref().map(Spanned::span),
    ];
    for span in qualifiers.into_iter().flatten() {
        errors.push(Error::new(span, "a tool is a plain `fn` or `async fn`"));
    }
    for param in &signature.generics.params {
        // Lifetimes are harmless: only the context can have one.
        if !matches!(param, GenericParam::Lifetime(_)) {
            errors.push(Error::new_spanned(
                param,
                "a tool cannot be generic: its schema has to say what the model must send",
            ));
        }
    }
}

fn name(signature: &Signature, args: &Args) -> syn::Result<String> {
    if let Some(name) = &args.name {
        return Ok(name.value());
    }
    let name = signature.ident.unraw().to_string();
    if is_tool_name(&name) {
        return Ok(name);
    }
    Err(Error::new(
        signature.ident.span(),
        "models know tools only by 1 to 64 letters, digits, `_` and `-`; write `#[tool(name = \
         \"...\")]`",
    ))
}

fn description(item: &ItemFn, args: &Args) -> syn::Result<String> {
    if let Some(description) = &args.description {
        return Ok(description.value().trim().to_owned());
    }
    doc::text(&item.attrs)?.ok_or_else(|| {
        Error::new(
            item.sig.ident.span(),
            "a tool needs a description, by which the model chooses it; write a doc comment, or \
             `#[tool(description = \"...\")]`",
        )
    })
}

fn returns(signature: &Signature) -> syn::Result<Returns> {
    match &signature.output {
        ReturnType::Type(_, output) => {
            Ok(Returns { fallible: is_path_to(output, "Result"), span: output.span() })
        }
        ReturnType::Default => Err(Error::new(
            signature.ident.span(),
            "a tool gives the model something to read; return for example a `String`",
        )),
    }
}

/// What the model gives for `input`, whose doc comments are taken away; `None` for the context.
fn param(position: usize, input: &mut FnArg) -> syn::Result<Option<Param>> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            return Err(Error::new_spanned(receiver, "a tool is a free function, without `self`"));
        }
    };
    if is_path_to(&typed.ty, "ToolCx") {
        if position > 0 {
            return Err(Error::new_spanned(&typed.ty, "the context is the first parameter"));
        }
        return Ok(None);
    }
    let conditional = |attribute: &&Attribute| {
        attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
    };
    if let Some(attribute) = typed.attrs.iter().find(conditional) {
        return Err(Error::new_spanned(
            attribute,
            "a tool's parameter is always there; put the condition on the tool",
        ));
    }
    let param = Param {
        name: param_name(typed)?,
        ty: owned(&typed.ty)?,
        description: doc::text(&typed.attrs)?,
    };
    typed.attrs.retain(|attribute| !doc::is_comment(attribute));
    Ok(Some(param))
}

fn param_name(param: &PatType) -> syn::Result<String> {
    match &*param.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            Ok(pat.ident.unraw().to_string())
        }
        pattern => Err(Error::new_spanned(
            pattern,
            "a tool's parameter needs a plain name, by which the model gives it",
        )),
    }
}

/// The type, if it can be read from JSON and kept.
fn owned(ty: &Type) -> syn::Result<Type> {
    let mut opaque = Opaque::default();
    opaque.visit_type(ty);
    if let Some(error) = opaque.0.into_option() {
        return Err(error);
    }
    let Type::Reference(reference) = ty else {
        return Ok(ty.clone());
    };
    let instead = match &*reference.elem {
        inner if is_path_to(inner, "ToolCx") => "the context is taken by value: `ToolCx<'_>`",
        inner if is_path_to(inner, "str") => "a tool owns its parameters; take a `String`",
        Type::Slice(_) => "a tool owns its parameters; take a `Vec`",
        _ => "a tool owns its parameters; take it by value",
    };
    Err(Error::new_spanned(ty, instead))
}

/// Refuses every `impl Trait` in a type.
#[derive(Default)]
struct Opaque(Errors);

impl<'ast> Visit<'ast> for Opaque {
    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.0.push(Error::new_spanned(
            ty,
            "a tool's parameter has one type, which says how it looks in JSON; `impl Trait` is many",
        ));
    }
}

fn is_path_to(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        Type::Paren(inner) => is_path_to(&inner.elem, name),
        Type::Group(inner) => is_path_to(&inner.elem, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;

    fn function(source: &str) -> syn::Result<Function> {
        Function::new(syn::parse_str(source).expect("a function"), &Args::default())
    }

    #[test]
    fn the_parts_of_a_function_are_found() {
        let function = function(
            "/// Tells\n/// the weather.\n\
             pub async fn r#weather(\n\
               mut cx: tenure::context::ToolCx<'_>,\n\
               /// The city.\n  mut city: String,\n\
               #[allow(unused)] r#type: Option<u32>,\n\
             ) -> std::io::Result<String> { body() }",
        )
        .expect("a tool");
        let params: Vec<_> = function.params.iter().map(|p| (&*p.name, &p.description)).collect();

        assert_eq!(function.name, "weather");
        assert_eq!(function.description, "Tells the weather.");
        assert!(function.takes_context);
        assert!(function.returns.fallible);
        assert_eq!(params, [("city", &Some("The city.".to_owned())), ("type", &None)]);
        let signature = function.item.sig.to_token_stream().to_string();
        assert!(!signature.contains("doc"), "{signature}");
        assert!(signature.contains("allow"), "{signature}");
    }

    #[test]
    fn only_what_is_called_result_can_fail() {
        for (returns, fallible) in [
            ("Result<String, E>", true),
            ("std::io::Result<String>", true),
            ("(Result<String, E>)", true),
            ("String", false),
            ("Option<Result<String, E>>", false),
        ] {
            let function = function(&format!("/// D\nfn f() -> {returns} {{ body() }}"));
            assert_eq!(function.expect(returns).returns.fallible, fallible, "{returns}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (source, expected) in [
            ("fn f() -> String {}", "needs a description"),
            ("///\nfn f() -> String {}", "needs a description"),
            ("/// D\nfn f() {}", "something to read"),
            ("/// D\nfn wetter_für() -> String {}", "letters, digits"),
            ("/// D\nfn f<T>(t: T) -> String {}", "cannot be generic"),
            ("/// D\nfn f<const N: usize>() -> String {}", "cannot be generic"),
            ("/// D\nunsafe fn f() -> String {}", "plain `fn` or `async fn`"),
            ("/// D\nconst fn f() -> String {}", "plain `fn` or `async fn`"),
            ("/// D\nextern \"C\" fn f() -> String {}", "plain `fn` or `async fn`"),
            ("/// D\nfn f(&self) -> String {}", "without `self`"),
            ("/// D\nfn f(self: Box<Self>) -> String {}", "without `self`"),
            ("/// D\nfn f((a, b): (u8, u8)) -> String {}", "plain name"),
            ("/// D\nfn f(_: u8) -> String {}", "plain name"),
            ("/// D\nfn f(ref a: u8) -> String {}", "plain name"),
            ("/// D\nfn f(a: impl Into<String>) -> String {}", "`impl Trait` is many"),
            ("/// D\nfn f(a: Vec<impl Into<String>>) -> String {}", "`impl Trait` is many"),
            ("/// D\nfn f(a: &str) -> String {}", "take a `String`"),
            ("/// D\nfn f(a: &[u8]) -> String {}", "take a `Vec`"),
            ("/// D\nfn f(a: &Plan) -> String {}", "by value"),
            ("/// D\nfn f(cx: &ToolCx<'_>) -> String {}", "`ToolCx<'_>`"),
            ("/// D\nfn f(a: u8, cx: ToolCx<'_>) -> String {}", "the first parameter"),
            ("/// D\nfn f(#[cfg(unix)] a: u8) -> String {}", "always there"),
        ] {
            let error = function(source).err().expect(source).to_string();
            assert!(error.contains(expected), "{source}: {error}");
        }
    }

    #[test]
    fn everything_wrong_is_reported_at_once() {
        let error = function("fn f<T>(&self, a: &str) {}").err().expect("many errors");
        assert_eq!(error.into_iter().count(), 5);
    }

    #[test]
    fn a_lifetime_for_the_context_is_fine() {
        function("/// D\nasync fn f<'a>(cx: ToolCx<'a>) -> String {}").expect("a tool");
    }
}
