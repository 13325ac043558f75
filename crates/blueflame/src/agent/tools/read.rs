//! Read: the lines of a text file, numbered.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Told, files};

/// Lines that are shown unless more or fewer are asked for.
const LINES: usize = 2_000;
/// Of a longer line only this much is shown.
const LONGEST_LINE: usize = 2_000;
/// All that is shown at once, about.
const LONGEST: usize = 100_000;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    file_path: PathBuf,
    offset: Option<usize>,
    limit: Option<usize>,
}

pub(super) fn definition() -> (String, Value, Value) {
    let description = format!(
        "Shows a text file, each line with its number and a tab before it; {LINES} lines unless told otherwise. Long lines are cut."
    );
    let properties = json!({
        "file_path": {"type": "string"},
        "offset": {"type": "integer", "description": "first line, counted from 1"},
        "limit": {"type": "integer", "description": "how many lines"},
    });
    (description, properties, json!(["file_path"]))
}

pub(super) fn run(input: &Input) -> Told {
    let bytes = files::read(&input.file_path)?;
    if files::is_binary(&bytes) {
        let (shown, size) = (input.file_path.display(), bytes.len());
        return Err(format!("`{shown}` is a binary file of {size} bytes, which cannot be shown"));
    }
    let text = String::from_utf8_lossy(&bytes);
    numbered(&text, &input.file_path, input.offset.unwrap_or(1), input.limit.unwrap_or(LINES))
}

fn numbered(text: &str, path: &Path, offset: usize, limit: usize) -> Told {
    let total = text.lines().count();
    if total == 0 {
        return Ok("(the file is empty)".to_owned());
    }
    let first = offset.max(1);
    if first > total {
        return Err(format!("`{}` has {total} lines; line {first} is not there", path.display()));
    }
    let mut shown = String::new();
    let mut next = first;
    for line in text.lines().skip(first - 1).take(limit.max(1)) {
        if shown.len() > LONGEST {
            break;
        }
        let _ = write!(shown, "{next}\t");
        if let Some((end, _)) = line.char_indices().nth(LONGEST_LINE) {
            let _ = writeln!(shown, "{}… ({} bytes more)", &line[..end], line.len() - end);
        } else {
            shown.push_str(line);
            shown.push('\n');
        }
        next += 1;
    }
    if next <= total {
        let _ = write!(shown, "({total} lines in all; go on with offset {next})");
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, offset: usize, limit: usize) -> Told {
        numbered(text, Path::new("/f"), offset, limit)
    }

    #[test]
    fn lines_are_numbered_and_what_is_left_out_is_said() {
        for (text, offset, limit, expected) in [
            ("a\nb\n", 1, 9, Ok("1\ta\n2\tb\n")),
            ("a\r\nb", 0, 9, Ok("1\ta\n2\tb\n")),
            ("a\nb\nc\n", 2, 1, Ok("2\tb\n(3 lines in all; go on with offset 3)")),
            ("a\n", 1, 0, Ok("1\ta\n")),
            ("a\n", 2, 9, Err("`/f` has 1 lines; line 2 is not there")),
            ("", 1, 9, Ok("(the file is empty)")),
        ] {
            assert_eq!(
                shown(text, offset, limit),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text:?}"
            );
        }
    }

    #[test]
    fn long_lines_and_long_files_are_cut() {
        let long = format!("{}\nend\n", "é".repeat(5_000));
        let text = shown(&long, 1, 9).unwrap();
        assert!(text.contains("… (6000 bytes more)\n2\tend\n"), "{}", &text[text.len() - 60..]);
        let many = "0123456789\n".repeat(100_000);
        let text = shown(&many, 1, usize::MAX).unwrap();
        assert!(text.len() < LONGEST + 3_000);
        assert!(text.contains("(100000 lines in all; go on with offset "));
    }

    #[test]
    fn binary_files_are_named_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"\x7fELF\0\0").unwrap();
        let input = Input { file_path: path, offset: None, limit: None };
        assert!(
            run(&input)
                .unwrap_err()
                .ends_with("is a binary file of 6 bytes, which cannot be shown")
        );
    }
}
