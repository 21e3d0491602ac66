//! Parts that a guard of texts cannot read.

use tenure_core::Error;
use tenure_core::content::{Content, Part};

/// Refuses content with a part that is no text: to pass it on unread would be to fail open.
pub(crate) fn refuse_unread(content: &Content) -> Result<(), Error> {
    let unread = |part: &&Part| !matches!(part, Part::Text(_) | Part::Json(_));
    match content.parts().iter().find(unread) {
        None => Ok(()),
        Some(part) => {
            Err(Error::denied(format!("it has a part that this guard cannot read: {part}")))
        }
    }
}
