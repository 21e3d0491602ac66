//! The way into confinement.

use crate::confinement::{Confinement, Network};
use crate::listed::Before;
use crate::privileges::Counted;
use crate::{calls, listed, mounts, privileges, sockets};
use std::path::PathBuf;

/// What confines a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// Whether it has a mount namespace of its own.
    pub mounts: bool,
    /// Whether it has a network namespace of its own, without a network.
    pub network: bool,
    /// Whether landlock holds for it.
    pub landlock: bool,
    /// Whether calls of the system are filtered.
    pub seccomp: bool,
    /// Its folder for temporary files, as it finds it.
    pub temporary: Option<PathBuf>,
}

/// Confines this process, which has one thread, and all that it will start. There is no way back.
///
/// What the kernel cannot do is left out, unless the rules are [required](Confinement::is_required): then, and if
/// something fails half-way, the error says what.
pub fn enter(rules: &Confinement) -> Result<Entered, String> {
    let mut entered = Entered { temporary: rules.temporary.clone(), ..Entered::default() };
    let mut counted = Counted::User;
    // Listed by the network namespace that is left next.
    let sockets = if rules.network == Network::None { sockets::bound(rules) } else { Vec::new() };
    // Where one of the two is refused, landlock has to do alone, with folders that hold exceptions listed.
    if let Ok(whose) = mounts::leave(rules.network) {
        counted = whose;
        entered.network = rules.network == Network::None;
        if let Ok(taken) = mounts::take(rules) {
            let arranged = mounts::arrange(rules, taken, &sockets);
            entered.temporary = arranged.map_err(|error| format!("its mounts: {error}"))?;
            entered.mounts = true;
        }
    }
    privileges::limit(rules, counted);
    privileges::drop_capabilities();
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    let before = if entered.mounts { Before::Mounts } else { Before::Nothing };
    entered.landlock = listed::restrict(rules, entered.temporary.as_deref(), before)?;
    entered.seccomp = calls::refuse(rules.network)?;
    if rules.is_required && !(entered.mounts || entered.landlock) {
        return Err("this kernel has neither mount namespaces nor landlock".to_owned());
    }
    if rules.network == Network::None && !entered.seccomp && !entered.network {
        return Err("this kernel cannot take its network from it".to_owned());
    }
    Ok(entered)
}
