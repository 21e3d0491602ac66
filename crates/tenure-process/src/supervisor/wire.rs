//! The messages between the program, its supervisor and the keepers of trees.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use tenure_sandbox::{Confinement, Network};

/// The requests to the supervisor, each a byte.
pub(super) const SPAWN: u8 = b'S';
/// Asks what the kernel can do.
pub(super) const PROBE: u8 = b'P';
/// The request to a keeper to ask its process to end.
pub(super) const TERMINATE: u8 = b'T';

const NETWORKS: [Network; 3] = [Network::None, Network::Users, Network::Granted];

/// A process to be started.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Order {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) dir: PathBuf,
    pub(super) rules: Option<Confinement>,
}

impl Order {
    /// Returns it as a message, with its length before it.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 4];
        put(&mut bytes, [self.program.as_os_str(), self.dir.as_os_str()]);
        put(&mut bytes, self.args.iter().map(OsString::as_os_str));
        put(&mut bytes, self.variables.iter().flat_map(|(name, value)| [&**name, &**value]));
        if let Some(rules) = &self.rules {
            let lists =
                [&rules.writable, &rules.protected, &rules.hidden, &rules.copied, &rules.needed];
            for list in lists {
                put(&mut bytes, list.iter().map(|path| path.as_os_str()));
            }
            put(&mut bytes, rules.temporary.iter().map(|path| path.as_os_str()));
            let network =
                NETWORKS.iter().position(|it| *it == rules.network).unwrap_or_default() as u64;
            for number in [network, rules.processes, rules.memory, u64::from(rules.is_required)] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    /// Reads a message that is whole: one that ends early could end before its rules.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let mut bytes = Vec::new();
        if from.take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = &bytes[..];
        let mut first = texts(&mut rest)?.into_iter();
        let (program, dir) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let args = texts(&mut rest)?;
        let mut pairs = texts(&mut rest)?.into_iter();
        let mut variables = Vec::new();
        while let (Some(name), Some(value)) = (pairs.next(), pairs.next()) {
            variables.push((name, value));
        }
        let rules = if rest.is_empty() { None } else { Some(rules(&mut rest)?) };
        Ok(Self { program, args, variables, dir: dir.into(), rules })
    }
}

fn rules(rest: &mut &[u8]) -> io::Result<Confinement> {
    Ok(Confinement {
        writable: paths(rest)?,
        protected: paths(rest)?,
        hidden: paths(rest)?,
        copied: paths(rest)?,
        needed: paths(rest)?,
        temporary: paths(rest)?.into_iter().next(),
        network: *NETWORKS.get(number(rest)? as usize).ok_or(io::ErrorKind::InvalidData)?,
        processes: number(rest)?,
        memory: number(rest)?,
        is_required: number(rest)? == 1,
    })
}

fn put<'a>(bytes: &mut Vec<u8>, texts: impl IntoIterator<Item = &'a OsStr>) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    let mut count: u32 = 0;
    for text in texts {
        count += 1;
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

fn texts(rest: &mut &[u8]) -> io::Result<Vec<OsString>> {
    let count = length(rest)?;
    let mut texts = Vec::new();
    for _ in 0..count {
        let length = length(rest)?;
        let (text, behind) = rest.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        texts.push(OsString::from_vec(text.to_vec()));
        *rest = behind;
    }
    Ok(texts)
}

fn paths(rest: &mut &[u8]) -> io::Result<Vec<PathBuf>> {
    Ok(texts(rest)?.into_iter().map(PathBuf::from).collect())
}

fn length(rest: &mut &[u8]) -> io::Result<usize> {
    let (head, behind) = rest.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    *rest = behind;
    Ok(u32::from_le_bytes(*head) as usize)
}

fn number(rest: &mut &[u8]) -> io::Result<u64> {
    let (head, behind) = rest.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    *rest = behind;
    Ok(u64::from_le_bytes(*head))
}

/// The kind of a message of a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// The process runs; its id.
    Started = 1,
    /// The system refused to start it; its error.
    Refused = 2,
    /// It could not be confined; a text follows whose length this is.
    Unconfined = 3,
    /// It ended by itself; its code.
    Exited = 4,
    /// It ended by a signal; its number.
    Signalled = 5,
}

/// The size of a message: its tag and a number.
pub(super) const MESSAGE: usize = 5;

pub(super) fn message(tag: Tag, number: i32) -> [u8; MESSAGE] {
    let [a, b, c, d] = number.to_le_bytes();
    [tag as u8, a, b, c, d]
}

pub(super) fn parse([tag, number @ ..]: [u8; MESSAGE]) -> Option<(Tag, i32)> {
    let tags = [Tag::Started, Tag::Refused, Tag::Unconfined, Tag::Exited, Tag::Signalled];
    let tag = tags.into_iter().find(|it| *it as u8 == tag)?;
    Some((tag, i32::from_le_bytes(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let odd = OsString::from_vec(vec![0xff, b'=', 0]);
        let mut order = Order {
            program: "sh".into(),
            args: vec!["-c".into(), odd.clone(), "".into()],
            variables: vec![("A".into(), odd)],
            dir: "/x".into(),
            rules: None,
        };
        let rules = Confinement {
            writable: vec!["/w".into()],
            protected: vec!["/w/p".into(), "/w/q".into()],
            temporary: Some("/t".into()),
            network: Network::None,
            processes: 7,
            memory: u64::MAX,
            is_required: true,
            ..Confinement::default()
        };
        for rules in [None, Some(rules)] {
            order.rules = rules;
            let bytes = order.bytes().unwrap();
            assert_eq!(Order::read(&mut &bytes[..]).unwrap(), order);
            // A part of it is no order, wherever it ends.
            for length in 0..bytes.len() {
                assert!(Order::read(&mut &bytes[..length]).is_err(), "{length} bytes");
            }
        }
    }
}
