//! Writing YAML for people to read and edit.

use serde::Serialize;

/// Writes a value so that our own reader reads the same value back: texts that
/// look like something else are quoted, longer ones become blocks.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, CannotWrite> {
    serde_saphyr::to_string(value).map_err(|error| CannotWrite(error.to_string()))
}

/// A value that YAML has no form for, such as a mapping with lists as keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cannot be written as YAML: {0}")]
pub struct CannotWrite(String);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::{Document, Limits};
    use super::*;

    type Texts = BTreeMap<String, Vec<String>>;

    fn again(texts: &Texts) -> Texts {
        let written = to_string(texts).unwrap();
        let (read, problems) =
            Document::parse(written.as_bytes(), Limits::PLAN).unwrap().read::<Texts>();
        let problems = problems.into_sorted();
        assert!(problems.is_empty(), "{written}\n{problems:#?}");
        read.unwrap()
    }

    #[test]
    fn texts_that_look_like_something_else_stay_texts() {
        let texts = [
            "yes",
            "no",
            "true",
            "null",
            "~",
            "",
            "1e3",
            "0x10",
            "0o7",
            "12",
            "-1.5",
            ".inf",
            "1_000",
            "2026-01-01",
            "a: b",
            "a:",
            "# x",
            "x # y",
            "- a",
            "-",
            "*x",
            "&x",
            "!x",
            "%x",
            "@x",
            "`x",
            "{",
            "[a",
            "'q'",
            "\"q\"",
            "\\d+\\s",
            " lead",
            "trail ",
            "tab\tx",
            "\tx",
            "x\t",
            "a\nb",
            "a\n",
            "\n",
            "\na",
            "a\n\n",
            " a\nb",
            "a \nb ",
            "a\r\nb",
            "a\rb",
            "é😀",
            "\u{85}",
            "\u{2028}x",
            "\u{feff}x",
            "\u{7}",
            "\0",
            "<<",
            "=",
            "---",
            "...",
            "? a",
            ": a",
            "|",
            ">",
            "a\n---\nb",
            "a\n# b",
            "x\n ",
            "\u{a0}",
            "12:30:45",
        ];
        let texts = Texts::from([("k".to_owned(), texts.map(str::to_owned).to_vec())]);
        assert_eq!(again(&texts), texts);
    }

    fn hard_text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ \t\n:#\\-'\"a0\\\\|>{},é😀\r\u{85}\u{feff}]{0,12}",
            "(yes|no|null|~|1e3|0x1|-|\\.5|true)?[ \n]?",
        ]
    }

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(
            texts in proptest::collection::btree_map(
                hard_text(),
                proptest::collection::vec(hard_text(), 0..4),
                0..4,
            )
        ) {
            prop_assert_eq!(again(&texts), texts);
        }
    }
}
