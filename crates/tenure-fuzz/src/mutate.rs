//! Inputs from inputs: cut, joined, repeated and strewn with words, the same for the same seed.

/// The largest input that is made, in bytes; one in a hundred is larger.
const USUAL: usize = 16 << 10;
const LARGEST: usize = 256 << 10;

/// Makes inputs from a corpus. Equal seeds and corpora make equal inputs.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
    corpus: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    /// A mutator of these inputs, which strews in these words and those of the inputs.
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>, words: &[&str]) -> Self {
        let mut words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let of_corpus = corpus.iter().flat_map(|input| input.split(|byte| !is_part(byte)));
        let of_corpus = of_corpus.filter(|word| (2..20).contains(&word.len())).map(<[u8]>::to_vec);
        words.extend(of_corpus.take(2000));
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, corpus, words }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.any();
        let most = if self.below(100) == 0 { LARGEST } else { USUAL };
        for _ in 0..=self.below(6) {
            self.change(&mut input, most);
            input.truncate(most);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, most: usize) {
        let at = self.below(input.len() + 1);
        match self.below(8) {
            0 => {
                let end = (at + 1 + self.below(64)).min(input.len());
                input.drain(at..end);
            }
            1 => {
                let end = (at + 1 + self.below(200)).min(input.len());
                let piece = input[at..end].to_vec();
                let times = self.times(piece.len(), most);
                input.splice(at..at, piece.repeat(times));
            }
            2 => {
                let word = self.word();
                let times = self.times(word.len(), most);
                input.splice(at..at, word.repeat(times));
            }
            3 | 4 => {
                let word = self.word();
                input.splice(at..at, word);
            }
            5 => {
                let other = self.any();
                let from = self.below(other.len() + 1);
                let to = from + self.below(other.len() - from + 1);
                input.splice(at..at, other[from..to].iter().copied());
            }
            6 => {
                let end = (at + self.below(12)).min(input.len());
                let word = self.word();
                input.splice(at..end, word);
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << (self.state % 8);
                }
            }
        }
    }

    /// Mostly few, sometimes as many as fit.
    fn times(&mut self, length: usize, most: usize) -> usize {
        match self.below(4) {
            0 => 1 + self.below(most / length.max(1) + 1),
            _ => 1 + self.below(8),
        }
    }

    fn any(&mut self) -> Vec<u8> {
        let at = self.below(self.corpus.len());
        self.corpus.get(at).cloned().unwrap_or_default()
    }

    fn word(&mut self) -> Vec<u8> {
        let at = self.below(self.words.len());
        self.words.get(at).cloned().unwrap_or_default()
    }

    /// A number below `end`; 0 if that is 0.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*: it need not be good, only the same everywhere.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        if end == 0 { 0 } else { number as usize % end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_make_equal_inputs() {
        let inputs = |seed| -> Vec<Vec<u8>> {
            let corpus = vec![b"name: a\nhooks: []".to_vec(), Vec::new()];
            let mut mutator = Mutator::new(seed, corpus, &["{{", "}}"]);
            (0..200).map(|_| mutator.next_input()).collect()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
        assert!(inputs(7).iter().all(|input| input.len() <= LARGEST));
    }
}
