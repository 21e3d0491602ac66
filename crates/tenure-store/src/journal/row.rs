//! A row of `events`: to be written, and as it was read.

use super::pack::{Packed, pack};
use super::sum::{Chain, Sum};
use crate::db::StoreFile;
use crate::key::{Seal, Table};
use rusqlite::types::ValueRef;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tenure_core::step::StepKey;

/// A row to be appended to a run. What is not set is null.
pub(crate) struct NewRow {
    pub(crate) time: i64,
    pub(crate) of: Cow<'static, str>,
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) instance: Option<String>,
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) cause: Option<String>,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) kind: Option<Arc<str>>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) ordinal: Option<u32>,
    pub(crate) input: Option<u64>,
    /// What the input is made of; goes with it.
    pub(crate) detail: Option<Arc<str>>,
    pub(crate) data: Option<Packed>,
}

impl NewRow {
    /// A row of this type, such as `run.started`, of now.
    pub(crate) fn new(of: impl Into<Cow<'static, str>>) -> Self {
        Self {
            time: millis(SystemTime::now()),
            of: of.into(),
            agent: None,
            instance: None,
            trace: None,
            cause: None,
            path: None,
            kind: None,
            name: None,
            ordinal: None,
            input: None,
            detail: None,
            data: None,
        }
    }

    /// A step's record.
    pub(crate) fn step(key: &StepKey, data: &Value) -> Self {
        Self::new("step.recorded").key(key).data(data)
    }

    /// The step it is about.
    pub(crate) fn key(mut self, key: &StepKey) -> Self {
        self.path = Some(key.path.clone());
        self.kind = Some(key.kind.clone());
        self.name = Some(key.name.clone());
        (self.ordinal, self.input) = (Some(key.ordinal), Some(key.input));
        self.detail = (!key.detail.is_empty()).then(|| key.detail.clone());
        self
    }

    /// What it says. Big and repeated parts are taken apart here, in the caller's thread.
    pub(crate) fn data(mut self, data: &Value) -> Self {
        self.data = Some(pack(data));
        self
    }

    /// The row as bytes, all but sum and chain.
    pub(super) fn sum(&self, run: &str, seq: i64, sum: &mut Sum) {
        sum.clear();
        sum.text(run).int(seq).int(self.time).text(&self.of);
        sum.opt_text(self.agent.as_deref()).opt_text(self.instance.as_deref());
        sum.opt_text(self.trace.as_deref()).opt_text(self.cause.as_deref());
        sum.opt_text(self.path.as_deref()).opt_text(self.kind.as_deref());
        sum.opt_text(self.name.as_deref()).opt_int(self.ordinal.map(i64::from));
        sum.opt_text(self.input_text().as_deref());
        sum.opt_text(self.data.as_ref().map(|data| &*data.text));
    }

    /// A step's input as the column has it: its hash, and behind it what it is made of.
    pub(super) fn input_text(&self) -> Option<String> {
        let input = self.input?;
        Some(match &self.detail {
            Some(detail) => format!("{input:016x} {detail}"),
            None => format!("{input:016x}"),
        })
    }
}

/// The columns of `events`, in the order that [`Row::read`] takes them.
pub(crate) const COLUMNS: &str = "run, seq, time, type, agent, instance, trace, cause, path, kind, \
                                  name, ordinal, input, data, sum, chain";

/// Where the sum is, and so how many columns it covers.
const SUM: usize = 14;

/// A row as it was read, whose sum is right. `data` is as it is stored: [`Store::expand`] puts back
/// what is kept apart.
///
/// [`Store::expand`]: crate::Store
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) seq: u64,
    pub(crate) time: i64,
    pub(crate) of: Box<str>,
    pub(crate) agent: Option<Box<str>>,
    pub(crate) instance: Option<Box<str>>,
    pub(crate) trace: Option<Box<str>>,
    pub(crate) cause: Option<Box<str>>,
    pub(crate) path: Option<Box<str>>,
    pub(crate) kind: Option<Box<str>>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) ordinal: Option<u32>,
    pub(crate) input: Option<u64>,
    pub(crate) detail: Option<Box<str>>,
    pub(crate) data: Option<Box<str>>,
}

impl Row {
    /// The key of the step that it is about.
    pub(crate) fn key(&self) -> Option<StepKey> {
        let (path, kind, name) =
            (self.path.as_deref()?, self.kind.as_deref()?, self.name.as_deref()?);
        let key = StepKey::new(path, kind, name, self.ordinal?, self.input?);
        Some(match self.detail.as_deref() {
            Some(detail) => key.with_detail(detail),
            None => key,
        })
    }
}

/// A row of a run by its place and its chain, which is of all there is in it and before it: what
/// events are sealed by, and heads.
pub(super) fn link(run: &str, seq: u64, chain: &Chain) -> Sum {
    let mut link = Sum::new();
    write_link(run, seq, chain, &mut link);
    link
}

/// The same, in memory that is used again.
pub(super) fn write_link(run: &str, seq: u64, chain: &Chain, link: &mut Sum) {
    link.clear();
    link.text(run).int(i64::try_from(seq).unwrap_or(i64::MAX)).blob(chain);
}

/// What is wrong with a row, for people.
pub(super) type Wrong = String;

/// A row as SQLite has it, before anything is believed.
pub(super) struct Stored<'a, 'stmt>(pub(super) &'a rusqlite::Row<'stmt>);

impl Stored<'_, '_> {
    /// Checks the seal, and leaves the row as bytes in `sum`. The seal is of the chain: that this is
    /// the row's is for the caller to see.
    pub(super) fn check(&self, file: &StoreFile, sum: &mut Sum) -> Result<(), Wrong> {
        sum.clear();
        for column in 0..SUM {
            sum.column(self.column(column)?);
        }
        let link = link(self.text(0)?.unwrap_or_default(), self.seq()?, &self.chain()?);
        Ok(sum.check_with(file, Table::Events, self.column(SUM)?, &link)?)
    }

    /// The seal of the row.
    pub(super) fn seal(&self, file: &StoreFile) -> Result<Seal, Wrong> {
        let mut sum = Sum::new();
        for column in 0..SUM {
            sum.column(self.column(column)?);
        }
        let link = link(self.text(0)?.unwrap_or_default(), self.seq()?, &self.chain()?);
        Ok(sum.seal_with(file, Table::Events, &link))
    }

    /// The chain as it is stored.
    pub(super) fn chain(&self) -> Result<Chain, Wrong> {
        match self.column(SUM + 1)? {
            ValueRef::Blob(chain) => chain.try_into().map_err(|_| "its chain is cut".to_owned()),
            _ => Err("its chain is missing".to_owned()),
        }
    }

    /// The row's number in its run.
    pub(super) fn seq(&self) -> Result<u64, Wrong> {
        self.number(1)?.ok_or_else(|| "it has no number".to_owned())
    }

    /// The row's type.
    pub(super) fn of(&self) -> Result<&str, Wrong> {
        self.text(3)?.ok_or_else(|| "it has no type".to_owned())
    }

    /// The row's kind, if it has one.
    pub(super) fn kind(&self) -> Result<Option<&str>, Wrong> {
        self.text(9)
    }

    /// The row. For one that was checked.
    pub(super) fn row(&self) -> Result<Row, Wrong> {
        let (input, detail) = match self.text(12)?.map(|text| (text, text.split_once(' '))) {
            Some((_, Some((input, detail)))) => (Some(input), Some(detail.into())),
            Some((input, None)) => (Some(input), None),
            None => (None, None),
        };
        let input = input.map(|text| u64::from_str_radix(text, 16));
        let boxed = |column| self.text(column).map(|text| text.map(Box::from));
        Ok(Row {
            seq: self.seq()?,
            time: self.number::<i64>(2)?.unwrap_or(0),
            of: self.of()?.into(),
            agent: boxed(4)?,
            instance: boxed(5)?,
            trace: boxed(6)?,
            cause: boxed(7)?,
            path: boxed(8)?,
            kind: boxed(9)?,
            name: boxed(10)?,
            ordinal: self.number(11)?,
            input: input.transpose().map_err(|_| "its input is no hash".to_owned())?,
            detail,
            data: boxed(13)?,
        })
    }

    fn column(&self, column: usize) -> Result<ValueRef<'_>, Wrong> {
        self.0.get_ref(column).map_err(|error| error.to_string())
    }

    fn number<N: TryFrom<i64>>(&self, column: usize) -> Result<Option<N>, Wrong> {
        match self.column(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => {
                number.try_into().map(Some).map_err(|_| format!("{number} is out of range"))
            }
            _ => Err("a number is something else".to_owned()),
        }
    }

    fn text(&self, column: usize) -> Result<Option<&str>, Wrong> {
        match self.column(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => {
                std::str::from_utf8(text).map(Some).map_err(|error| error.to_string())
            }
            _ => Err("a text is something else".to_owned()),
        }
    }
}

/// A time as the file has it.
pub(crate) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(error) => -i64::try_from(error.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// A time, read back.
pub(crate) fn time(millis: i64) -> SystemTime {
    let span = std::time::Duration::from_millis(millis.unsigned_abs());
    let time = if millis < 0 { UNIX_EPOCH.checked_sub(span) } else { UNIX_EPOCH.checked_add(span) };
    time.unwrap_or(UNIX_EPOCH)
}
