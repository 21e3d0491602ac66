//! The table: what each cell must come to.

use crate::matrix::cell::Seen;
use crate::matrix::deed::{Deed, Host, decides};
use tenure_core::Outcome;
use tenure_core::hook::{FaultKind, Point};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Guard,
    Other,
}

/// What a cell comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The card is refused before anything runs.
    Refused,
    /// Everything goes its way.
    Fine,
    /// The hook said no.
    Denied { point: Point },
    /// The hook failed in this way, and that meets its policy.
    Faulty { point: Point, role: Role, kind: FaultKind },
}

pub(crate) fn expected(host: Host, deed: Deed, point: Point, role: Role) -> Expected {
    // An end and a transition have nothing left to deny, so there are no guards there; and a Python
    // file that is not there is found before anything runs.
    if role == Role::Guard && !decides(point) || (host, deed) == (Host::Python, Deed::Missing) {
        return Expected::Refused;
    }
    let fault = |kind| Expected::Faulty { point, role, kind };
    match (host, deed) {
        (_, Deed::Agrees) => Expected::Fine,
        (_, Deed::Denies) if decides(point) => Expected::Denied { point },
        (_, Deed::Denies) => fault(FaultKind::BadReply),
        // A wrap has to give a result.
        (Host::Python, Deed::SaysNothing)
            if matches!(point, Point::WrapToolCall | Point::WrapModelCall) =>
        {
            fault(FaultKind::BadReply)
        }
        // What says nothing goes on; a guard has to say that it agrees.
        (Host::Python, Deed::SaysNothing) => match role {
            Role::Guard => fault(FaultKind::BadReply),
            Role::Other => Expected::Fine,
        },
        (Host::Command, Deed::SaysNothing | Deed::ClosesPipes) => match role {
            Role::Guard => fault(FaultKind::BadReply),
            Role::Other => Expected::Fine,
        },
        (Host::Command, Deed::Exits1 | Deed::Exits2) => fault(FaultKind::Exited),
        (Host::Command, Deed::Missing | Deed::NotExecutable) => fault(FaultKind::NotStarted),
        (_, Deed::Crashes) => fault(FaultKind::Panicked),
        (_, Deed::Hangs) => fault(FaultKind::TimedOut),
        (Host::Command, Deed::NotUtf8) => fault(FaultKind::BadReply),
        // What a function prints is no answer: it is kept as well as it can be.
        (Host::Python, Deed::NotUtf8) => Expected::Fine,
        (_, Deed::Nonsense | Deed::Floods) => fault(FaultKind::BadReply),
        (Host::Python, Deed::Raises | Deed::Exits1 | Deed::Exits2) => fault(FaultKind::Failed),
        (Host::Python, Deed::OsExit) => fault(FaultKind::Exited),
        // A worker that cannot answer any more ends itself.
        (Host::Python, Deed::ClosesPipes) => fault(FaultKind::Exited),
        _ => unreachable!("there is no such row"),
    }
}

impl Expected {
    pub(crate) fn compare(self, seen: &Seen) -> Result<(), String> {
        let wanted = self.wanted();
        let got = (seen.started, seen.outcome, seen.tool_ran);
        if wanted != got {
            return Err(format!(
                "wanted (started, outcome, tool ran) {wanted:?}, got {got:?}; {seen:?}"
            ));
        }
        if let Self::Faulty { kind, .. } = self
            && !seen.faults.iter().any(|fault| phrases(kind).iter().any(|it| fault.contains(it)))
        {
            return Err(format!("no fault says {:?}: {:?}", phrases(kind), seen.faults));
        }
        if self == Self::Fine && !seen.faults.is_empty() {
            return Err(format!("faults where none should be: {:?}", seen.faults));
        }
        Ok(())
    }

    /// Whether the team started, how the run ended, and whether the tool ran.
    pub(crate) fn wanted(self) -> (bool, Option<Outcome>, bool) {
        match self {
            Self::Refused => (false, None, false),
            Self::Fine => (true, Some(Outcome::Ok), true),
            Self::Denied { point } => match point {
                Point::OnStart => (false, None, false),
                // The call is denied, and the model reads that.
                Point::WrapToolCall => (true, Some(Outcome::Ok), false),
                _ => (true, Some(Outcome::Denied), false),
            },
            Self::Faulty { point, role, kind } => match (point, role) {
                (Point::OnStart, _) => (false, None, false),
                (Point::WrapToolCall, Role::Guard) => (true, Some(Outcome::Ok), false),
                (_, Role::Guard) => (true, Some(Outcome::Denied), false),
                _ if !decides(point) => (true, Some(Outcome::Ok), true),
                (_, Role::Other) => (true, Some(kind.outcome()), false),
            },
        }
    }
}

/// How a failure of this kind reads.
fn phrases(kind: FaultKind) -> &'static [&'static str] {
    match kind {
        FaultKind::Panicked => &["panicked", "crashed"],
        FaultKind::TimedOut => &["timed out"],
        FaultKind::BadReply => &["gave a bad reply"],
        FaultKind::Exited => &["exited with a failure"],
        FaultKind::NotStarted => &["could not be started"],
        _ => &["failed"],
    }
}
