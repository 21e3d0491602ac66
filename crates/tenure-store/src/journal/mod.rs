//! What happened in runs, row by row: appended by one writer, checked whenever it is read.
//!
//! Here is how rows are written, summed, chained and read back, and how what is big or repeated is
//! kept apart. What the rows *mean* to a run is not here.

mod anything;
mod append;
mod audit;
mod list;
mod pack;
mod read;
mod reseal;
mod row;
mod shelf;
mod sum;
mod writer;

pub(crate) use anything::read_anything;
pub(crate) use append::Tx;
pub(crate) use audit::{Audit, Referred};
pub(crate) use pack::{Packed, list_reference, pack_list};
pub use read::Record;
pub(crate) use reseal::reseal_events;
pub(crate) use row::{NewRow, Row, millis, time};
pub(crate) use shelf::Shelf;
pub(crate) use sum::{Hash, Sum, hash, hash_of_list, hex, unhex};
pub(crate) use writer::{Job, Writer, run_one, with_tx};

#[cfg(test)]
mod tests;
