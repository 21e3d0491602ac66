use tenure::tool;

struct Plan;

/// A tool is a function.
#[tool]
struct Weather;

/// A tool has one schema.
#[tool]
fn generic<T, const N: usize>(value: T) -> String {
    String::new()
}

impl Plan {
    /// A tool stands alone.
    #[tool]
    async fn method(&self, city: String) -> String {
        city
    }
}

/// A tool is called from anywhere.
#[tool]
unsafe fn dangerous() -> String {
    String::new()
}

#[tool]
fn undescribed() -> String {
    String::new()
}

/// A tool answers.
#[tool]
fn silent(text: String) {}

fn main() {}
