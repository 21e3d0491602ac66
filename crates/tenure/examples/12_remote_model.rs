//! A real model, by its name, streamed to the terminal.
//!
//! Needs a key in the environment, for instance `OPENAI_API_KEY`; without one it says what to do.
//!
//! ```sh
//! cargo run --example 12_remote_model --features providers -- sonnet "What is a tenure?"
//! ```

use std::io::Write;
use std::process::ExitCode;
use tenure::models::provider::{ProviderConfig, Providers};
use tenure::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "openai.gpt-4o-mini".to_owned());
    let question = words.next().unwrap_or_else(|| "Say hello in one sentence.".to_owned());
    let model = match Providers::new(ProviderConfig::default()).model(&name) {
        Ok(model) => model,
        Err(error) => {
            eprintln!("error: {error}\nhelp: {}", error.help());
            return ExitCode::from(2);
        }
    };
    match answer(model, question).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn answer(model: impl Model, question: String) -> Result<(), Error> {
    let agent = Agent::builder("remote").model(model).build()?;
    agent
        .scoped(async |agent| {
            let mut stream = agent.stream(question);
            while let Some(piece) = stream.next().await {
                print!("{piece}");
                let _ = std::io::stdout().flush();
            }
            let report = stream.finish().await?;
            println!("\n[{} tokens, {}]", report.usage.total(), report.usage.cost);
            Ok(())
        })
        .await
}
