//! What a recorded run does while it waits for a person.

/// What becomes of a recorded run when everybody who is at work in it waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenWaiting {
    /// It waits in this process, for an answer from here or from elsewhere.
    #[default]
    Stay,
    /// It is [parked](crate::Error::parks): the questions are on record, and the run goes on from
    /// there in its next life. Only with a log that
    /// [keeps asks](super::StepLog::keeps_asks).
    Park,
}
