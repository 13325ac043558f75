//! Lines of a file, one at a time and never more of it in memory than the
//! longest record.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::record::MAX_RECORD;

const BUFFER: usize = 128 * 1024;

/// What comes next in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line with its newline.
    Line,
    /// Bytes up to the end of the file, without a newline.
    Unfinished {
        bytes: u64,
    },
    /// A line that no writer of ours can have made. Only its first part is kept.
    TooLong,
    End,
}

#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    pub fn new(input: R) -> Self {
        Lines { input: BufReader::with_capacity(BUFFER, input), line: Vec::new() }
    }

    /// The line that was read last, without its newline.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    pub fn next(&mut self) -> io::Result<Piece> {
        self.line.clear();
        let most = MAX_RECORD as u64 + 1;
        let bytes = self.input.by_ref().take(most).read_until(b'\n', &mut self.line)? as u64;
        if bytes == 0 {
            Ok(Piece::End)
        } else if self.line.pop_if(|last| *last == b'\n').is_some() {
            Ok(Piece::Line)
        } else if bytes < most {
            Ok(Piece::Unfinished { bytes })
        } else {
            self.skip_line(bytes)
        }
    }

    fn skip_line(&mut self, mut bytes: u64) -> io::Result<Piece> {
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(Piece::Unfinished { bytes });
            }
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let used = newline.map_or(chunk.len(), |at| at + 1);
            self.input.consume(used);
            bytes += used as u64;
            if newline.is_some() {
                return Ok(Piece::TooLong);
            }
        }
    }
}

impl<R: Read + Seek> Lines<R> {
    /// Goes on reading at a byte of the file, as it is now.
    pub fn go_to(&mut self, at: u64) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(at)).map(drop)
    }

    pub fn source(&self) -> &R {
        self.input.get_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_newline_and_the_rest_is_unfinished() {
        let mut lines = Lines::new(&b"one\n\nthree"[..]);
        assert_eq!((lines.next().unwrap(), lines.line()), (Piece::Line, &b"one"[..]));
        assert_eq!((lines.next().unwrap(), lines.line()), (Piece::Line, &b""[..]));
        assert_eq!(lines.next().unwrap(), Piece::Unfinished { bytes: 5 });
        assert_eq!(lines.next().unwrap(), Piece::End);
    }

    #[test]
    fn a_line_at_the_limit_is_read_and_a_longer_one_is_not_kept() {
        let limit = MAX_RECORD as u64;
        let file = io::repeat(b'x').take(limit).chain(&b"\n"[..]);
        let file = file.chain(io::repeat(b'y').take(3 * limit)).chain(&b"\nend"[..]);
        let mut lines = Lines::new(file);
        assert_eq!((lines.next().unwrap(), lines.line().len()), (Piece::Line, MAX_RECORD));
        assert_eq!(lines.next().unwrap(), Piece::TooLong);
        assert!(lines.line.capacity() < 3 * MAX_RECORD, "the long line was kept");
        assert_eq!(lines.next().unwrap(), Piece::Unfinished { bytes: 3 });
    }

    #[test]
    fn a_tail_beyond_the_limit_is_unfinished_and_counted() {
        let bytes = 2 * MAX_RECORD as u64;
        let mut lines = Lines::new(io::repeat(0).take(bytes));
        assert_eq!(lines.next().unwrap(), Piece::Unfinished { bytes });
    }
}
