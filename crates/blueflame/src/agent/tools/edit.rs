//! Edit: exact text replaced by other text.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Told, files};

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    file_path: PathBuf,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn definition() -> (String, Value, Value) {
    let description = "Replaces text in a file. old_string must stand in the file exactly as given (without Read's line numbers), and only once, unless replace_all is true.";
    let properties = json!({
        "file_path": {"type": "string"},
        "old_string": {"type": "string"},
        "new_string": {"type": "string"},
        "replace_all": {"type": "boolean"},
    });
    (description.to_owned(), properties, json!(["file_path", "old_string", "new_string"]))
}

pub(super) fn run(input: &Input) -> Told {
    let bytes = files::read(&input.file_path)?;
    let shown = input.file_path.display();
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("`{shown}` is not UTF-8 text, so it cannot be edited"))?;
    let (changed, places) = replaced(&text, input).map_err(|why| format!("{why} in `{shown}`"))?;
    files::write(&input.file_path, changed.as_bytes())?;
    let places = if places == 1 { "1 place".to_owned() } else { format!("{places} places") };
    Ok(format!("changed {places} in {shown}"))
}

fn replaced(text: &str, input: &Input) -> Result<(String, usize), String> {
    let (mut old, mut new) = (input.old_string.clone(), input.new_string.clone());
    if old.is_empty() {
        return Err("old_string is empty; use Write to make a file; nothing was changed".to_owned());
    }
    if old == new {
        return Err("old_string and new_string are the same; nothing was changed".to_owned());
    }
    if !text.contains(&old) && text.contains("\r\n") && !old.contains('\r') {
        // Read does not show these line ends, so the model cannot know them.
        (old, new) = (old.replace('\n', "\r\n"), new.replace('\n', "\r\n"));
    }
    match text.matches(&old).count() {
        0 => Err("old_string was not found; read the file again, every space counts".to_owned()),
        1 => Ok((text.replacen(&old, &new, 1), 1)),
        places if input.replace_all => Ok((text.replace(&old, &new), places)),
        places => Err(format!(
            "old_string stands {places} times; give more of the text around it, or set replace_all"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_meant_for_sure_is_replaced() {
        for (text, old, new, all, expected) in [
            ("a b c", "b", "x", false, Ok(("a x c", 1))),
            ("a b b", "b", "x", true, Ok(("a x x", 2))),
            ("a b c", "b ", "", false, Ok(("a c", 1))),
            ("a\r\nb\r\n", "a\nb", "a\nc", false, Ok(("a\r\nc\r\n", 1))),
            ("a b b", "b", "x", false, Err("old_string stands 2 times")),
            ("a", "A", "x", false, Err("old_string was not found")),
            ("a", "A", "x", true, Err("old_string was not found")),
            ("a", "", "x", true, Err("old_string is empty")),
            ("a", "a", "a", false, Err("old_string and new_string are the same")),
        ] {
            let input = Input {
                file_path: PathBuf::new(),
                old_string: old.to_owned(),
                new_string: new.to_owned(),
                replace_all: all,
            };
            match (replaced(text, &input), expected) {
                (Ok((changed, places)), Ok(expected)) => {
                    assert_eq!((changed.as_str(), places), expected);
                }
                (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{why}"),
                (got, _) => panic!("{text:?} {old:?}: {got:?}"),
            }
        }
    }
}
