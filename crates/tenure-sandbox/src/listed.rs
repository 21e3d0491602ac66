//! Files by landlock.
//!
//! A rule of landlock holds for all beneath a folder and has no exceptions. Behind a mount namespace, which has them,
//! it repeats the outlines. Where there is none, every folder that holds an exception is listed instead, and what is
//! made new in such a folder is not in the list: it cannot be written.

use crate::confinement::Confinement;
use crate::devices;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::fs;
use std::path::{Path, PathBuf};

/// The latest version of landlock whose rights are known here. An older kernel does what it can.
const KNOWN: ABI = ABI::V7;
/// The most entries that are listed of the folders that hold exceptions.
const MOST_ENTRIES: usize = 100_000;

/// What stands before landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// A mount namespace, which has the exceptions.
    Mounts,
    /// Nothing.
    Nothing,
}

/// Restricts this process. Returns `false` if the kernel has no landlock.
pub(crate) fn restrict(
    rules: &Confinement,
    temporary: Option<&Path>,
    before: Before,
) -> Result<bool, String> {
    let failed = |error: landlock::RulesetError| format!("landlock: {error}");
    let all = AccessFs::from_all(KNOWN);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|it| it.scope(Scope::from_all(KNOWN)))
        .and_then(Ruleset::create)
        .map_err(failed)?;
    let mut list = List { ruleset: Some(ruleset), left: MOST_ENTRIES };
    let read = AccessFs::from_read(KNOWN);
    match before {
        Before::Mounts => {
            list.grant(Path::new("/"), read)?;
            for path in rules.writable.iter().chain(&rules.copied) {
                list.grant(path, all)?;
            }
        }
        Before::Nothing => {
            // The names of files are no secret; a folder that holds one could not be looked at otherwise.
            list.grant(Path::new("/"), AccessFs::ReadDir.into())?;
            let mut unread = rules.hidden.clone();
            unread.push(devices::FOLDER.into());
            list.grant_except(Path::new("/"), read, &unread)?;
            let exceptions: Vec<PathBuf> =
                rules.protected.iter().chain(&rules.hidden).cloned().collect();
            for path in &rules.writable {
                list.grant_except(path, all, &exceptions)?;
            }
        }
    }
    if let Some(temporary) = temporary {
        list.grant(temporary, all)?;
    }
    let usual = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    match before {
        // It holds what may be had, and nothing else.
        Before::Mounts => {
            list.grant(Path::new(devices::FOLDER), usual)?;
            list.grant(Path::new(devices::SHARED_MEMORY), all)?;
        }
        Before::Nothing => {
            for device in devices::granted().iter().chain(&devices::terminals()) {
                list.grant(device, usual)?;
            }
        }
    }
    let Some(ruleset) = list.ruleset else { return Ok(false) };
    let status = ruleset.restrict_self().map_err(failed)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

struct List {
    /// `None` only within a call.
    ruleset: Option<RulesetCreated>,
    left: usize,
}

impl List {
    /// Grants rights to all beneath a path; none, if it is not there.
    fn grant(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), String> {
        let Ok(found) = fs::metadata(path) else { return Ok(()) };
        let Ok(place) = PathFd::new(path) else { return Ok(()) };
        let rights = if found.is_dir() { rights } else { rights & AccessFs::from_file(KNOWN) };
        let Some(ruleset) = self.ruleset.take() else { return Ok(()) };
        let granted = ruleset.add_rule(PathBeneath::new(place, rights));
        self.ruleset = Some(granted.map_err(|error| format!("landlock: {error}"))?);
        Ok(())
    }

    /// Grants rights to all beneath a path that is not beneath an exception.
    fn grant_except(
        &mut self,
        path: &Path,
        rights: BitFlags<AccessFs>,
        exceptions: &[PathBuf],
    ) -> Result<(), String> {
        if exceptions.iter().any(|exception| path.starts_with(exception)) {
            return Ok(());
        }
        if !exceptions.iter().any(|exception| exception.starts_with(path)) {
            return self.grant(path, rights);
        }
        let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
        for entry in entries.flatten() {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                let most = MOST_ENTRIES;
                return Err(format!("more than {most} entries would have to be listed"));
            }
            // What a link leads to has the rights of its own place.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.grant_except(&entry.path(), rights, exceptions)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Landlock holds for a thread, so that each test has one to give away.
    fn confined<T: Send>(what: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                rustix::thread::set_no_new_privs(true).unwrap();
                let rules = Confinement::default();
                assert_eq!(restrict(&rules, None, Before::Nothing), Ok(true));
                what()
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn without_mounts_only_the_usual_devices_can_be_opened() {
        // Not all there are: to open a watchdog starts it.
        let names = ["kmsg", "mem", "kvm", "fuse", "loop-control", "loop0", "sda", "vda", "hwrng"];
        let others = names.map(|name| Path::new(devices::FOLDER).join(name));
        let open = |path: &PathBuf| File::open(path).is_ok();
        let before: Vec<&PathBuf> = others.iter().filter(|path| open(path)).collect();
        let after: Vec<&PathBuf> = confined(|| others.iter().filter(|path| open(path)).collect());
        assert_eq!(after, Vec::<&PathBuf>::new(), "of {before:?}");
        confined(|| {
            File::options().write(true).open("/dev/null").unwrap();
            File::open("/dev/urandom").unwrap();
        });
    }
}
