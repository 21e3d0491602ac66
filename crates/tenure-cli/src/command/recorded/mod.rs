//! Runs that are on record.
//!
//! `adopt` makes sure that they are the user's own. [`Place`] is where a project's runs are recorded, [`Keeper`] the right to drive them, `input` what
//! is kept for doing a run again, [`Life`] one life of a run, from where it is taken up to what is
//! left of it, and [`Kept`] what is said of that. [`Prepared`] is a run of the record that may go on;
//! `resume` goes on with runs and gives them up, `conversation` continues conversations.

mod adopt;
mod conversation;
mod input;
mod keeper;
mod kept;
mod life;
mod place;
mod prepared;
mod resume;

pub(super) use adopt::{Adoption, adopted, tell_unless_known};
pub(super) use conversation::{
    Conversation, asked_of_last, conversation_of, must_be_over, only_cards,
};
pub(super) use input::{CARD, Recorded, WORKFLOW};
pub(super) use keeper::Keeper;
pub(super) use kept::{Kept, asker};
pub(super) use life::Life;
pub(super) use place::{Place, keys_outside, stays_inside};
pub(super) use prepared::{Done, Prepared};
pub(super) use resume::{before_run, resume};
