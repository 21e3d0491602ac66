//! What a hook and a tool would otherwise have to say twice, said once.
//!
//! [`macro@lifecycle`] computes which points of an agent's life a hook has; [`macro@tool`] makes a
//! tool, with its schema and its error messages, of a function. Both are re-exported by the crate
//! `tenure`, and work for users of `tenure` and of `tenure-core` alike, also under another name.
//!
//! The macros only write code that a person could have written: an `impl AgentLifecycle` with its
//! `points`, and an `impl Tool`.

mod condition;
mod doc;
mod errors;
mod lifecycle;
mod nearest;
mod paths;
mod tool;

use proc_macro::TokenStream;

/// Computes the points of a hook, and makes its methods `async`.
///
/// Goes on an `impl AgentLifecycle for ...`, generic or not. It applies `#[async_trait]`, and adds
/// the method `points` with exactly the points whose functions the `impl` has, so that the others
/// cost nothing. Without it, and without `#[async_trait]`, the compiler says that "lifetime
/// parameters do not match the trait declaration" (E0195).
///
/// # What it guarantees
///
/// - A point is in the mask if and only if its function is compiled in: the `#[cfg(...)]`
///   attributes of the function count for its bit too.
/// - A `points` of your own is left alone.
/// - An `impl` with a macro invocation in it, which may expand to any function, gets the default:
///   every point.
/// - A function that is neither a point, nor `points` or `name`, does not compile: a misspelt hook
///   is never a hook that is not called. The same holds for a hook that is not `async`.
///
/// It takes no arguments.
///
/// # Example
///
/// The example is compiled, with the others, by the tests of `tenure`.
///
/// ```ignore
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tenure::context::{PhaseCx, TurnCx};
/// use tenure::drive::Input;
/// use tenure::hook::{AgentLifecycle, Flow, HookError, Point};
/// use tenure::lifecycle;
///
/// #[derive(Default)]
/// struct CountTurns {
///     turns: AtomicUsize,
/// }
///
/// #[lifecycle]
/// impl AgentLifecycle for CountTurns {
///     async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
///         self.turns.fetch_add(1, Ordering::Relaxed);
///         Ok(Flow::Continue)
///     }
///
///     #[cfg(debug_assertions)] // and so in the mask of debug builds only
///     async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
///         eprintln!("{} -> {}", cx.from(), cx.to());
///         Ok(())
///     }
/// }
///
/// let points = CountTurns::default().points();
/// assert!(points.contains(Point::BeforeAgent));
/// assert!(!points.contains(Point::OnStart));
/// assert_eq!(points.contains(Point::OnTransition), cfg!(debug_assertions));
/// ```
#[proc_macro_attribute]
pub fn lifecycle(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match paths::root() {
        Ok(root) => lifecycle::expand(arguments.into(), item.into(), &root).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Makes a tool of a function.
///
/// Goes on a free `async fn` or `fn`. In place of the function there is then a unit struct of its
/// name and visibility that implements `Tool`; hand it to an agent as any other tool. As with every
/// unit struct, no `let` in its scope can have its name.
///
/// # What becomes what
///
/// | of the function | of the tool |
/// |---|---|
/// | name | name |
/// | doc comment | description; a tool without one does not compile, for the model chooses by it |
/// | first parameter, if it is a `ToolCx<'_>` | the context of the call |
/// | any other parameter | a property of the schema, by its type's `ToolParam` |
/// | doc comment of a parameter | the property's description |
/// | return type `Result<T, E>` | `T: Into<ToolOutput>`, `E: Into<ToolError>` |
/// | any other return type `T` | `T: Into<ToolOutput>` |
///
/// The lines of a paragraph of a doc comment are joined; paragraphs, lists and code stay apart.
///
/// # Arguments
///
/// | argument | meaning |
/// |---|---|
/// | `name = "..."` | the name that the model calls it by; at most 64 of `a-z A-Z 0-9 _ -` |
/// | `description = "..."` | what the model reads in place of the doc comment |
/// | `effect = "..."` | `"idempotent"`, `"keyed"` or `"at_most_once"`: what a crash means for a call under way; at most once if left out |
/// | `limit = "5s"` | the most time that a call may take, with a unit: ms, s, m, h |
/// | `writes = ["key", ...]` | the shared keys that it writes |
///
/// # What it guarantees
///
/// - The schema is an object that takes exactly the function's parameters. A parameter is required
///   unless its type says what to take when it is missing, as `Option` does.
/// - The body runs only with arguments that all were there and could be read. Otherwise the call
///   ends with a `ToolError`, not fatal, that the model can act on. It names everything that is
///   wrong at once, a line each: ``argument `city` is missing``, ``argument `days`: invalid type:
///   string "x", expected u32``, ``unknown argument `foo`; this tool takes city, days``.
/// - Everything wrong with the function itself is an error at compile time: generics, `self`,
///   patterns, `impl Trait`, references, a limit of zero.
///
/// # Example
///
/// The example is compiled, with the others, by the tests of `tenure`.
///
/// ```ignore
/// use tenure::tool;
/// use tenure::tool::{Effect, Tool};
///
/// /// The weather of the next days,
/// /// as the service tells it.
/// #[tool(effect = "idempotent", limit = "5s")]
/// async fn forecast(
///     /// The city, in English.
///     city: String,
///     /// How many days; three if left out.
///     days: Option<u32>,
/// ) -> Result<String, std::io::Error> {
///     Ok(format!("{} sunny days in {city}", days.unwrap_or(3)))
/// }
///
/// let spec = forecast.spec();
/// assert_eq!(&*spec.name, "forecast");
/// assert_eq!(spec.description, "The weather of the next days, as the service tells it.");
/// assert_eq!(spec.effect, Effect::Idempotent);
/// assert_eq!(spec.parameters["required"], serde_json::json!(["city"]));
/// ```
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded =
        paths::root().and_then(|root| tool::expand(arguments.into(), item.into(), &root));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
