//! The encodings themselves. Making one ready takes a while, and happens once in a process.

use super::Encoding;
use std::sync::OnceLock;
use tiktoken_rs::CoreBPE;

static O200K: OnceLock<CoreBPE> = OnceLock::new();
static CL100K: OnceLock<CoreBPE> = OnceLock::new();

/// Longer texts are counted in pieces, so that no text takes longer than its length: a pattern that
/// looks ahead may do that. Each cut may count a token too many.
const PIECE: usize = 16 << 10;

fn cell(encoding: Encoding) -> &'static OnceLock<CoreBPE> {
    match encoding {
        Encoding::Cl100kBase => &CL100K,
        _ => &O200K,
    }
}

pub(super) fn is_loaded(encoding: Encoding) -> bool {
    cell(encoding).get().is_some()
}

pub(super) fn load(encoding: Encoding) {
    encoder(encoding);
}

fn encoder(encoding: Encoding) -> &'static CoreBPE {
    cell(encoding).get_or_init(|| {
        let made = match encoding {
            Encoding::Cl100kBase => tiktoken_rs::cl100k_base(),
            _ => tiktoken_rs::o200k_base(),
        };
        made.expect("the tables are part of the program")
    })
}

/// What a text has.
pub(super) fn count(encoding: Encoding, text: &str) -> u64 {
    let encoder = encoder(encoding);
    let (mut rest, mut sum) = (text, 0);
    while rest.len() > PIECE {
        let (piece, after) = rest.split_at(cut(rest));
        sum += encoder.count_ordinary(piece);
        rest = after;
    }
    (sum + encoder.count_ordinary(rest)) as u64
}

/// Where a long text may be cut: before a space in its last part, or else between two characters.
fn cut(text: &str) -> usize {
    let end = text.floor_char_boundary(PIECE);
    let from = text.floor_char_boundary(PIECE - (PIECE >> 4));
    text[from..end].rfind([' ', '\n']).map_or(end, |at| from + at).max(1)
}
