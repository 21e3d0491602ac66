//! What is kept of a stream.

use tokio::io::{AsyncRead, AsyncReadExt};

/// What is kept of a stream: its beginning, up to a cap. What is beyond is read and dropped, so that
/// whoever writes it can go on.
#[derive(Clone, Debug)]
pub struct Kept {
    bytes: Vec<u8>,
    most: usize,
    dropped: usize,
}

impl Kept {
    /// Keeps at most so many bytes.
    pub fn at_most(most: usize) -> Self {
        Self { bytes: Vec::new(), most, dropped: 0 }
    }

    /// Reads a stream to its end.
    pub async fn listen(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut piece = [0; 8192];
        // A pipe that breaks has nothing more to say.
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            let room = self.most.saturating_sub(self.bytes.len()).min(read);
            self.bytes.extend_from_slice(&piece[..room]);
            self.dropped += read - room;
        }
    }

    /// The bytes that were kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// If there was more than is kept, drops the line in the middle of which that was: half of
    /// something cannot be known for what it is.
    pub fn whole_lines(&mut self) {
        if self.dropped > 0 {
            let end = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.dropped += self.bytes.len() - end;
            self.bytes.truncate(end);
        }
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// It as a text, which says how much was left out.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!("\n[{} more bytes were left out]", self.dropped));
        }
        text
    }
}
