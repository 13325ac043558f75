//! A block of lines at the bottom of a terminal, painted again in place.
//!
//! It writes nothing but cursor movements and what it is given, so lines must
//! have been made harmless before. Where there is no terminal, nothing is
//! painted.

use std::io::{self, Stderr, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::termios;

use crate::columns;

/// Nobody reads faster, and agents have better uses for the processor.
const SHORTEST: Duration = Duration::from_millis(100);

/// How much fits on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

impl Size {
    /// What terminals have that do not tell.
    pub const USUAL: Size = Size { width: 80, height: 24 };

    /// The size of a terminal, as it is now.
    pub fn of(terminal: impl AsFd) -> Size {
        match termios::tcgetwinsize(terminal) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { width: size.ws_col.into(), height: size.ws_row.into() }
            }
            _ => Size::USUAL,
        }
    }
}

/// Whether this is a terminal in which the cursor can be moved.
pub fn can_paint(out: &impl io::IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Paints one block and keeps other lines above it.
#[derive(Debug)]
pub struct Painter<W> {
    out: W,
    terminal: bool,
    /// How wide each line of the block on the screen is.
    painted: Vec<usize>,
    last: Option<Instant>,
    /// Lines that wait for the screen to be free again.
    held: Option<Vec<String>>,
}

impl Painter<Stderr> {
    /// The painter of a program's standard error.
    pub fn stderr() -> Self {
        let out = io::stderr();
        let terminal = can_paint(&out);
        Painter::new(out, terminal)
    }
}

impl<W: Write> Painter<W> {
    pub fn new(out: W, terminal: bool) -> Self {
        Painter { out, terminal, painted: Vec::new(), last: None, held: None }
    }

    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether blocks are painted at all, now or later.
    pub fn paints(&self) -> bool {
        self.terminal
    }

    /// Whether a block given now would be painted.
    pub fn is_due(&self, now: Instant) -> bool {
        self.terminal
            && self.held.is_none()
            && self.last.is_none_or(|last| now.duration_since(last) >= SHORTEST)
    }

    /// Puts the block in place of the one that is there, unless that was painted
    /// just now. Lines that are too long are cut; what does not fit below each
    /// other is left out from the top.
    pub fn paint(&mut self, lines: &[String], now: Instant, size: Size) -> io::Result<()> {
        if !self.is_due(now) {
            return Ok(());
        }
        self.last = Some(now);
        self.repaint(lines, size)
    }

    /// The same at once, for blocks that change seldom.
    pub fn repaint(&mut self, lines: &[String], size: Size) -> io::Result<()> {
        self.put("", lines, size)
    }

    /// Takes the block off the screen.
    pub fn clear(&mut self, size: Size) -> io::Result<()> {
        self.put("", &[], size)
    }

    /// Prints a line above the block, which is gone until it is painted next.
    pub fn say(&mut self, line: &str, size: Size) -> io::Result<()> {
        if let Some(held) = &mut self.held {
            held.push(line.to_owned());
            return Ok(());
        }
        // The block may come back at once.
        self.last = None;
        self.put(&format!("{line}\n"), &[], size)
    }

    /// Clears the screen for somebody else, such as a question. What is said
    /// meanwhile waits.
    pub fn hold(&mut self, size: Size) -> io::Result<()> {
        self.clear(size)?;
        self.held.get_or_insert_default();
        Ok(())
    }

    /// Goes on after [`Painter::hold`].
    pub fn release(&mut self, size: Size) -> io::Result<()> {
        let held = self.held.take().unwrap_or_default();
        held.iter().try_for_each(|line| self.say(line, size))
    }

    /// Replaces the block by some text and a new block, in one write: a screen
    /// that is seen between two writes flickers.
    fn put(&mut self, text: &str, lines: &[String], size: Size) -> io::Result<()> {
        let mut frame = String::new();
        // A terminal that became narrower has broken the lines anew.
        let rows: usize =
            self.painted.iter().map(|wide| wide.div_ceil(size.width.max(1)).max(1)).sum();
        if rows > 0 {
            // To the beginning of the block, and away with all from there on.
            frame.extend(["\x1b[", &rows.to_string(), "A\r\x1b[J"]);
        }
        frame.push_str(text);
        // The cursor has a line of its own below the block.
        let first = lines.len().saturating_sub(size.height.saturating_sub(1));
        let lines: Vec<String> =
            lines[first..].iter().map(|line| columns::clip(line, size.width)).collect();
        for line in &lines {
            frame.push_str(line);
            frame.push('\n');
        }
        self.painted = lines.iter().map(|line| columns::width(line)).collect();
        if frame.is_empty() {
            return Ok(());
        }
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 10, height: 5 };

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// What was written since the last look.
    fn written(painter: &mut Painter<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut painter.out)).unwrap()
    }

    fn later(now: Instant, millis: u64) -> Instant {
        now + Duration::from_millis(millis)
    }

    #[test]
    fn a_block_is_replaced_in_place_and_not_too_often() {
        let now = Instant::now();
        let mut painter = Painter::new(Vec::new(), true);
        painter.paint(&lines(&["one", "a line that is too long"]), now, SIZE).unwrap();
        assert_eq!(written(&mut painter), "one\na line ...\n");
        painter.paint(&lines(&["two"]), later(now, 99), SIZE).unwrap();
        assert_eq!(written(&mut painter), "");
        painter.paint(&lines(&["two"]), later(now, 100), SIZE).unwrap();
        assert_eq!(written(&mut painter), "\x1b[2A\r\x1b[Jtwo\n");
        painter.clear(SIZE).unwrap();
        assert_eq!(written(&mut painter), "\x1b[1A\r\x1b[J");
        painter.clear(SIZE).unwrap();
        assert_eq!(written(&mut painter), "");
    }

    #[test]
    fn lines_are_said_above_the_block() {
        let now = Instant::now();
        let mut painter = Painter::new(Vec::new(), true);
        painter.paint(&lines(&["block"]), now, SIZE).unwrap();
        painter.say("news, which may be long", SIZE).unwrap();
        painter.paint(&lines(&["block"]), later(now, 1), SIZE).unwrap();
        let shown = "block\n\x1b[1A\r\x1b[Jnews, which may be long\nblock\n";
        assert_eq!(written(&mut painter), shown);
    }

    #[test]
    fn a_terminal_that_became_narrower_has_broken_the_lines() {
        let now = Instant::now();
        let mut painter = Painter::new(Vec::new(), true);
        painter.paint(&lines(&["0123456789", ""]), now, SIZE).unwrap();
        written(&mut painter);
        let narrow = Size { width: 4, height: 5 };
        painter.paint(&lines(&["0123456789"]), later(now, 100), narrow).unwrap();
        assert_eq!(written(&mut painter), "\x1b[4A\r\x1b[J0123\n");
    }

    #[test]
    fn a_block_never_scrolls() {
        let mut painter = Painter::new(Vec::new(), true);
        painter.paint(&lines(&["1", "2", "3", "4", "5", "6"]), Instant::now(), SIZE).unwrap();
        assert_eq!(written(&mut painter), "3\n4\n5\n6\n");
    }

    #[test]
    fn a_question_has_the_screen_to_itself() {
        let now = Instant::now();
        let mut painter = Painter::new(Vec::new(), true);
        painter.paint(&lines(&["block"]), now, SIZE).unwrap();
        painter.hold(SIZE).unwrap();
        assert_eq!(written(&mut painter), "block\n\x1b[1A\r\x1b[J");
        painter.say("one", SIZE).unwrap();
        painter.paint(&lines(&["block"]), later(now, 500), SIZE).unwrap();
        painter.hold(SIZE).unwrap();
        painter.say("two", SIZE).unwrap();
        assert_eq!(written(&mut painter), "");
        painter.release(SIZE).unwrap();
        assert_eq!(written(&mut painter), "one\ntwo\n");
        painter.paint(&lines(&["block"]), later(now, 501), SIZE).unwrap();
        assert_eq!(written(&mut painter), "block\n");
    }

    #[test]
    fn without_a_terminal_lines_are_said_and_nothing_is_painted() {
        let mut painter = Painter::new(Vec::new(), false);
        painter.paint(&lines(&["block"]), Instant::now(), SIZE).unwrap();
        painter.say("news", SIZE).unwrap();
        assert_eq!(written(&mut painter), "news\n");
    }
}
