//! A file that is cut or has flipped bits: it opens at a valid prefix, or says what is damaged. It
//! never says what was not written.

use super::fixture::{Files, Found, Truth, build, folder};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tenure_testkit::cases;

/// What is done to a copy.
#[derive(Clone, Copy, Debug)]
enum Harm {
    CutFile(usize),
    CutLog(usize),
    FlipFile(usize),
    FlipLog(usize),
}

impl Harm {
    fn to(self, dead: &Files, closed: &Files) -> Files {
        let mut files = match self {
            Self::CutFile(_) | Self::FlipFile(_) => closed.clone(),
            Self::CutLog(_) | Self::FlipLog(_) => dead.clone(),
        };
        match self {
            Self::CutFile(bytes) => files.db.truncate(files.db.len() - bytes),
            Self::CutLog(bytes) => files.wal.truncate(files.wal.len() - bytes),
            Self::FlipFile(bit) => files.db[bit / 8] ^= 1 << (bit % 8),
            Self::FlipLog(bit) => files.wal[bit / 8] ^= 1 << (bit % 8),
        }
        files
    }
}

/// The last bytes of a file, at each of which it is cut; in the short form at some of them.
fn cuts() -> impl Iterator<Item = usize> {
    const LAST: usize = 4096;
    // A step that shares no factor with the sizes of pages and frames.
    (1..=LAST).step_by(LAST / cases(315, LAST))
}

/// Bits spread evenly over so many bytes, each somewhere in its part.
fn spread(bytes: usize, count: usize) -> impl Iterator<Item = usize> {
    let part = (8 * bytes) as u64 / count as u64;
    (0..count as u64).map(move |number| {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (number * part + mixed % part) as usize
    })
}

/// Does each harm to a copy of its own, and counts what the copies were found to be.
fn suffer(harms: &[Harm], dead: &Files, closed: &Files, truth: &Truth) -> BTreeMap<Found, usize> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (folder, mut found) = (folder(), BTreeMap::new());
                let runtime =
                    tokio::runtime::Builder::new_current_thread().build().expect("it is built");
                while let Some(harm) = harms.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let path = harm.to(dead, closed).write(folder.path());
                    let look = AssertUnwindSafe(|| truth.look(&path, &runtime));
                    let looked = catch_unwind(look);
                    *found.entry(looked.unwrap_or_else(|_| panic!("{harm:?}"))).or_insert(0) += 1;
                }
                let mut counts = counts.lock().expect("nobody panicked");
                found
                    .into_iter()
                    .for_each(|(found, count)| *counts.entry(found).or_insert(0) += count);
            });
        }
    });
    let counts = counts.into_inner().expect("nobody panicked");
    assert_eq!(counts.values().sum::<usize>(), harms.len());
    println!("{counts:?}");
    counts
}

fn built() -> (Files, Files, Truth) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("it is built").block_on(build())
}

#[test]
fn a_file_cut_at_any_of_its_last_bytes_says_so_or_is_a_prefix() {
    let (dead, closed, truth) = built();
    let cuts: Vec<_> = cuts().map(Harm::CutFile).collect();
    let found = suffer(&cuts, &dead, &closed, &truth);
    assert!(found.contains_key(&Found::Refused), "{found:?}");
}

#[test]
fn a_log_cut_at_any_of_its_last_bytes_opens_at_a_prefix() {
    let (dead, closed, truth) = built();
    let cuts: Vec<_> = cuts().map(Harm::CutLog).collect();
    let found = suffer(&cuts, &dead, &closed, &truth);
    assert!(!found.contains_key(&Found::Refused), "a log that ends early is no damage: {found:?}");
}

#[test]
fn a_flipped_bit_anywhere_is_never_read_as_if_it_had_been_written() {
    let (dead, closed, truth) = built();
    let count = cases(1_000, 10_000);
    let in_file = spread(closed.db.len(), count / 2).map(Harm::FlipFile);
    let in_log = spread(dead.wal.len(), count / 2).map(Harm::FlipLog);
    let flips: Vec<_> = in_file.chain(in_log).collect();
    assert_eq!(flips.len(), count);
    let found = suffer(&flips, &dead, &closed, &truth);
    assert!(found[&Found::Refused] > 0 && found[&Found::Prefix] > 0, "{found:?}");
}

#[test]
fn checking_a_file_with_a_flipped_bit_finds_it_or_it_does_not_matter() {
    let (dead, closed, truth) = built();
    let folder = folder();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it is built");
    let mut faulty = 0;
    for bit in spread(closed.db.len(), 200) {
        let path = Harm::FlipFile(bit).to(&dead, &closed).write(folder.path());
        let Ok(store) = crate::keys::open_existing(&path) else { continue };
        match store.verify() {
            Ok(verified) if verified.is_whole() => {
                drop(store);
                let path = Harm::FlipFile(bit).to(&dead, &closed).write(folder.path());
                assert_eq!(truth.look(&path, &runtime), Found::Whole, "bit {bit}");
            }
            Ok(verified) => {
                assert!(verified.faults.iter().all(|fault| !fault.wrong.is_empty()));
                faulty += 1;
            }
            Err(error) => assert!(error.is_damaged(), "bit {bit}: {error}"),
        }
    }
    assert!(faulty > 20, "{faulty}");
}
