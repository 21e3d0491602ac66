//! The example in the documentation of `#[tool]`.

use tenure::tool;
use tenure::tool::{Effect, Tool};

/// The weather of the next days,
/// as the service tells it.
#[tool(effect = "idempotent", limit = "5s")]
async fn forecast(
    /// The city, in English.
    city: String,
    /// How many days; three if left out.
    days: Option<u32>,
) -> Result<String, std::io::Error> {
    Ok(format!("{} sunny days in {city}", days.unwrap_or(3)))
}

fn main() {
    let spec = forecast.spec();
    assert_eq!(&*spec.name, "forecast");
    assert_eq!(
        spec.description,
        "The weather of the next days, as the service tells it."
    );
    assert_eq!(spec.effect, Effect::Idempotent);
    assert_eq!(spec.parameters["required"], serde_json::json!(["city"]));
}
