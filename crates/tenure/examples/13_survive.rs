//! A run that survives: its process dies in the middle, another one goes on with the record, and what
//! was done is not done again.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use tenure::engine::{Engine as _, NewRun};
use tenure::message::ToolCall;
use tenure::prelude::*;
use tenure::store::{LocalEngine, Recovery, StoreKeys};

/// Books a ticket.
#[tool(effect = "keyed")]
fn book(cx: ToolCx<'_>, train: String) -> String {
    println!("  booking {train} with key …{}", cx.call_id());
    // The first process loses its power here.
    if train == "night train" && std::env::var_os("DIES").is_some() {
        std::process::abort();
    }
    format!("{train} is booked")
}

/// Books two trains, one after the other. What it says follows from the conversation alone.
struct Planner;

#[async_trait::async_trait]
impl Model for Planner {
    async fn call(
        &self,
        request: &ModelRequest,
        _: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let booked = request.messages.iter().filter(|it| matches!(it, Message::Tool(_))).count();
        println!("  the model is asked, {booked} booked");
        Ok(match booked {
            0 => ModelResponse::calls([ToolCall::new("a", "book", r#"{"train":"day train"}"#)]),
            1 => ModelResponse::calls([ToolCall::new("b", "book", r#"{"train":"night train"}"#)]),
            _ => ModelResponse::text("Both trains are booked."),
        })
    }
}

async fn travel(file: &Path) -> Result<(), Error> {
    // `LocalEngine::open` keeps the key of the file with the user; here it goes with the file.
    let keys = StoreKeys::folder(file.with_file_name("keys"));
    let engine = LocalEngine::open_with(file, &keys)?;
    let planner = Agent::builder("planner").model(Planner).tool(book).blueprint()?;
    engine.register("planner", Arc::new(planner));
    let found = engine.recover(Recovery::Resume).await?;
    let run = match found.resumed.first() {
        Some(run) => {
            println!("a run was left unfinished; it goes on:");
            run.id
        }
        None => {
            let run = NewRun::new("planner", "To Rome and back".into());
            let id = run.id;
            println!("a new run:");
            engine.start(run).await?;
            id
        }
    };
    if let Some(run) = engine.result(run).await? {
        let said = run.output.unwrap_or_default();
        println!("{} ({} lives)", said.as_str().unwrap_or_default(), run.lives);
    }
    engine.shutdown().await;
    Ok(())
}

fn main() -> ExitCode {
    if let Some(file) = std::env::args_os().nth(1) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let travelled = runtime.map(|runtime| runtime.block_on(travel(Path::new(&file))));
        return match travelled {
            Ok(Ok(())) => ExitCode::SUCCESS,
            other => {
                eprintln!("{other:?}");
                ExitCode::FAILURE
            }
        };
    }
    // Two processes, one after the other, with the same file.
    let folder = std::env::temp_dir().join(format!("tenure-survive-{}", std::process::id()));
    let file = folder.join("runs.db");
    let live = |dies: bool| {
        let mut life = Command::new(std::env::current_exe()?);
        life.arg(&file);
        if dies {
            life.env("DIES", "1");
        }
        life.status()
    };
    let died = std::fs::create_dir_all(&folder).and_then(|()| live(true));
    println!(
        "the first process {}",
        if died.is_ok_and(|it| !it.success()) { "died" } else { "lives" }
    );
    let went_on = live(false);
    let _ = std::fs::remove_dir_all(&folder);
    if went_on.is_ok_and(|it| it.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
