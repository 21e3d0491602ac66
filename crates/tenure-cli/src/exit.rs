//! The exit codes of the program. They are a promise: scripts and CI rely on them.

use tenure_core::Outcome;

/// How the program ends, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It did what it was asked.
    Ok = 0,
    /// The run failed, or the program could not do its work.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The check found errors.
    Check = 3,
    /// The project is not trusted, and nothing of it was executed.
    Untrusted = 4,
    /// A guard or a person said no, or nobody was there to ask.
    Denied = 5,
    /// The model did not come to an end within the allowed steps, or the agents of a workflow within
    /// the allowed turns.
    MaxSteps = 6,
    /// It waits for a person, and nobody is there to ask.
    Waiting = 7,
    /// Somebody cancelled the run, other than by a signal.
    Cancelled = 8,
    /// The time was up.
    TimedOut = 124,
    /// Ended by SIGHUP.
    Hangup = 129,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// The code.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Ok,
            Outcome::Denied => Self::Denied,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::MaxSteps | Outcome::MaxTurns => Self::MaxSteps,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// An error that ends the program with a code of its own; every other error is [`Exit::Failed`].
#[derive(Debug)]
pub(crate) struct Stop {
    exit: Exit,
    message: String,
}

impl Stop {
    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// The project is not trusted, and nothing of it was executed.
    pub(crate) fn untrusted(message: impl Into<String>) -> Self {
        Self { exit: Exit::Untrusted, message: message.into() }
    }

    /// A person is waited for, and nothing else is done before.
    pub(crate) fn waiting(message: impl Into<String>) -> Self {
        Self { exit: Exit::Waiting, message: message.into() }
    }

    /// The code that `error` ends the program with.
    pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
        error.downcast_ref::<Stop>().map_or(Exit::Failed, |stop| stop.exit)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_the_code_that_was_promised() {
        let promised = [
            (Outcome::Ok, 0),
            (Outcome::Failed, 1),
            (Outcome::Panicked, 1),
            (Outcome::Abandoned, 1),
            (Outcome::Denied, 5),
            (Outcome::MaxSteps, 6),
            (Outcome::MaxTurns, 6),
            (Outcome::Cancelled, 8),
            (Outcome::TimedOut, 124),
        ];
        for (outcome, code) in promised {
            assert_eq!(Exit::from(outcome).code(), code, "{outcome}");
        }
    }

    #[test]
    fn the_codes_without_an_outcome_are_the_promised_ones() {
        let codes = [
            (Exit::Usage, 2),
            (Exit::Check, 3),
            (Exit::Untrusted, 4),
            (Exit::Waiting, 7),
            (Exit::Hangup, 129),
            (Exit::Interrupted, 130),
            (Exit::Terminated, 143),
        ];
        for (exit, code) in codes {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn an_ordinary_error_fails_and_a_usage_error_is_one() {
        assert_eq!(Stop::exit_of(&anyhow::anyhow!("no")), Exit::Failed);
        assert_eq!(Stop::exit_of(&Stop::usage("no").into()), Exit::Usage);
        let deeper = anyhow::Error::from(Stop::usage("no")).context("while reading");
        assert_eq!(Stop::exit_of(&deeper), Exit::Usage);
    }
}
