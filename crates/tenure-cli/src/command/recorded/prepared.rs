//! A run of the record that may go on.

use super::super::asked::View;
use super::super::cards::Cards;
use super::super::ended::Ended;
use super::super::ground::{After, Ground};
use super::super::workflow::{Chat, EndedChat};
use super::{Kept, Life, Place, Recorded, WORKFLOW};
use crate::exit::Exit;
use crate::terminal::print_json;
use anyhow::Result;
use tenure_core::engine::RunInfo;

/// A run that may go on: its files are right, built and trusted. Nothing has been executed, and
/// nothing recorded.
pub(crate) enum Prepared {
    /// Of cards.
    Cards(Box<Cards>, Recorded),
    /// Of a workflow.
    Chat(Box<Chat>, Recorded),
}

impl Prepared {
    /// Reads the files that a run of the record is of, as they are now, checks them, and asks for
    /// trust (G13). If they cannot be run, that is said, and the code is the error within.
    pub(crate) fn of(place: &Place, info: &RunInfo, view: &View) -> Result<Result<Self, Exit>> {
        let recorded = Recorded::of(place, info)?;
        let asked = recorded.asked.clone();
        Ok(match &*info.kind {
            WORKFLOW => {
                let path = asked.path.clone();
                Chat::ready(asked, view, &path)?.map(|it| Self::Chat(Box::new(it), recorded))
            }
            _ => Cards::ready(asked, view, false)?.map(|it| Self::Cards(Box::new(it), recorded)),
        })
    }

    /// What is on record of it.
    pub(crate) fn recorded(&self) -> &Recorded {
        match self {
            Self::Cards(_, recorded) | Self::Chat(_, recorded) => recorded,
        }
    }

    /// Drives it to its end, or to where it cannot go on, and shows it as an ordinary run.
    pub(crate) fn drive(self, ground: &Ground, after: After, life: Life) -> Result<Done> {
        match self {
            Self::Cards(cards, _) => cards.drive(ground, after, Some(life)).map(Done::from),
            Self::Chat(chat, _) => chat.drive(ground, after, Some(life)).map(Done::from),
        }
    }
}

/// A run that this process is done with.
pub(crate) enum Done {
    /// Of cards.
    Cards(Ended),
    /// Of a workflow.
    Chat(EndedChat),
}

impl From<Ended> for Done {
    fn from(ended: Ended) -> Self {
        Self::Cards(ended)
    }
}

impl From<EndedChat> for Done {
    fn from(ended: EndedChat) -> Self {
        Self::Chat(ended)
    }
}

impl Done {
    /// Tells how it went, as `tenure run` does.
    pub(crate) fn tell(&self, view: &View) -> Result<Exit> {
        match self {
            Self::Cards(ended) => {
                if view.json {
                    print_json(ended.to_json());
                } else {
                    ended.answer()?;
                }
                ended.conclude();
                // Last, where it is seen.
                ended.complain();
            }
            Self::Chat(ended) => {
                match (view.json, view.quiet) {
                    (true, _) => print_json(ended.to_json()),
                    (false, true) => ended.answer()?,
                    (false, false) => ended.answer_unsaid()?,
                }
                ended.conclude();
                ended.complain(view.quiet);
            }
        }
        Ok(self.exit())
    }

    /// The code that the program ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Cards(ended) => ended.exit(),
            Self::Chat(ended) => ended.exit(),
        }
    }

    /// What is on record of it.
    pub(crate) fn kept(&self) -> Option<&Kept> {
        match self {
            Self::Cards(ended) => ended.kept(),
            Self::Chat(ended) => ended.kept(),
        }
    }
}
