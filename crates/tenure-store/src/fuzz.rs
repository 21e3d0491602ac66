//! The readers of records, for those who try to break them.

/// Reads the bytes as the parts of a list of messages, and as a record.
pub fn journal(data: &[u8]) {
    crate::journal::read_anything(&String::from_utf8_lossy(data));
}
