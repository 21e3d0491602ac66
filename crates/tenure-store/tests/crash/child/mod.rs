//! The process that is killed: it drives the runs of a folder until they are over.

mod parts;
mod scenarios;
mod talk;

pub(crate) use parts::result_of;

use crate::crash::ledger::Ledger;
use crate::crash::subject::{Recovery, Scenario};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::engine::{Engine as _, NewRun, RunStatus, Runnable};
use tenure_store::LocalEngine;

/// What the process gets told, by the environment.
pub(crate) const FOLDER: &str = "TENURE_CRASH_FOLDER";
pub(crate) const SCENARIOS: &str = "TENURE_CRASH_SCENARIOS";
pub(crate) const RECOVERY: &str = "TENURE_CRASH_RECOVERY";

/// Lives, if this process was started to be killed.
pub(crate) fn live() -> bool {
    let Some(folder) = std::env::var_os(FOLDER) else { return false };
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    let scenarios = told(SCENARIOS);
    let scenarios: Vec<_> = scenarios
        .split(',')
        .map(|name| Scenario::named(name).unwrap_or_else(|| panic!("`{name}` is no scenario")))
        .collect();
    let recovery = match told(RECOVERY).as_str() {
        "go_on" => Recovery::GoOn,
        "abandon" => Recovery::Abandon,
        other => panic!("`{other}` is no recovery"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(drive(Path::new(&folder), &scenarios, recovery)).expect("the runs are driven");
    true
}

pub(crate) fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("tenure.db")
}

async fn drive(folder: &Path, scenarios: &[Scenario], recovery: Recovery) -> Result<(), Error> {
    let store = crate::keys::open(file(folder))?;
    let engine = LocalEngine::new(store.drive("a process that is to be killed")?);
    for scenario in Scenario::ALL {
        let ledger = Ledger::open(folder, scenario.name());
        engine.register(scenario.name(), runnable(scenario, &ledger)?);
    }
    let recovered = match recovery {
        Recovery::GoOn => engine.recover(tenure_store::Recovery::Resume).await?,
        Recovery::Abandon => engine.recover(tenure_store::Recovery::Abandon).await?,
    };
    println!("recovered: {recovered:?}");
    for scenario in scenarios {
        if recovery == Recovery::GoOn {
            let run = NewRun::new(scenario.name(), json!({ "message": "begin" }));
            engine.start(run.id(scenario.run())).await?;
        }
    }
    for scenario in scenarios {
        let Some(info) = engine.result(scenario.run()).await? else { continue };
        assert_eq!(info.status, RunStatus::Ended, "{scenario}: {:?}", info.error);
        println!("{scenario}: {:?} {:?}", info.outcome, info.output);
    }
    engine.shutdown().await;
    Ok(())
}

fn runnable(scenario: Scenario, ledger: &Ledger) -> Result<Arc<dyn Runnable>, Error> {
    Ok(match scenario {
        Scenario::Steps => Arc::new(scenarios::steps(ledger)?),
        Scenario::Children => Arc::new(scenarios::children(ledger)?),
        Scenario::Leave => Arc::new(scenarios::leave(ledger)?),
        Scenario::Talk => Arc::new(talk::talk(ledger)?),
    })
}
