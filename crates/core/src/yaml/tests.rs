//! Reading as a whole: every mistake is reported, and nothing panics.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sample {
    flag: bool,
    count: u32,
    small: i8,
    ratio: f64,
    name: Spanned<String>,
    wait: DurationText,
    maybe: Option<u64>,
    list: Vec<Spanned<String>>,
    shape: Shape,
    inner: Inner,
    map: BTreeMap<String, u8>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Inner {
    deep: u8,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    #[default]
    Round,
    VerySquare,
}

fn read(text: &str) -> (Option<Sample>, Vec<String>) {
    let document = match Document::parse(text.as_bytes(), Limits::CONFIG) {
        Ok(document) => document,
        Err(problems) => return (None, problems.iter().map(ToString::to_string).collect()),
    };
    let (value, problems) = document.read();
    let lines = problems.into_sorted().into_iter().map(|problem| {
        let at = problem.span.map_or("-", |span| &text[span.start..span.end]);
        let hint = problem.hint.as_deref().unwrap_or("-");
        format!("{problem} | {at} | {hint}")
    });
    (value, lines.collect())
}

#[test]
fn a_good_file_fills_the_type() {
    let (value, problems) = read(
        "flag: true\ncount: 0x10\nsmall: -5\nratio: 3\nname: yes\nwait: 1h 30m\nmaybe: null\n\
         list: [a, 'b']\nshape: very-square\ninner: {deep: 7}\nmap: {x y: 1}\n",
    );
    assert_eq!(problems, [""; 0]);
    let value = value.unwrap();
    assert_eq!((value.flag, value.count, value.small, value.ratio), (true, 16, -5, 3.0));
    assert_eq!((value.name.as_str(), value.wait.0.as_str()), ("yes", "1h 30m"));
    assert_eq!((value.maybe, value.shape), (None, Shape::VerySquare));
    assert_eq!((value.list.len(), value.inner.deep, value.map["x y"]), (2, 7, 1));
    assert_eq!(value.name.span, Some(Span::new(48, 51)));
}

#[test]
fn each_kind_of_mistake_says_what_is_wanted() {
    for (text, problem) in [
        (
            "flag: yes",
            "`flag` must be `true` or `false`, got `yes` | yes | `yes` is written `true` in this file",
        ),
        (
            "flag: 'false'",
            "`flag` must be `true` or `false`, got the text `false` | 'false' | remove the quotes: false",
        ),
        (
            "flag: 'Off'",
            "`flag` must be `true` or `false`, got the text `Off` | 'Off' | `Off` is written `false` in this file",
        ),
        ("count: -3", "`count` cannot be negative, got `-3` | -3 | -"),
        ("count: 4.5", "`count` must be a whole number, got `4.5` | 4.5 | -"),
        (
            "count: 99999999999999999999",
            "`count` is too large, got `99999999999999999999` | 99999999999999999999 | -",
        ),
        (
            "count: '4'",
            "`count` must be a whole number, got the text `4` | '4' | remove the quotes: 4",
        ),
        ("count: 1_000", "`count` must be a whole number, got `1_000` | 1_000 | write 1000"),
        ("count: two", "`count` must be a whole number, got `two` | two | -"),
        ("count:", "`count` has no value | count | remove the key to keep the default"),
        ("small: -200", "`small` is too small, got `-200` | -200 | -"),
        ("ratio: $5", "`ratio` must be a number, got `$5` | $5 | write 5"),
        ("name: 42", "`name` must be a text, got the number `42` | 42 | put it in quotes: \"42\""),
        ("name: true", "`name` must be a text, got `true` | true | put it in quotes: \"true\""),
        ("name: [a]", "`name` must be a text, got a list | [a] | -"),
        (
            "name:",
            "`name` has no value | name | write \"\" for an empty text, or remove the key to keep the default",
        ),
        (
            "wait: 300",
            "`wait` has no unit, got `300` | 300 | add one: `300s` for seconds, `300m` for minutes",
        ),
        (
            "wait: '300'",
            "`wait` has no unit, got `300` | '300' | add one: `300s` for seconds, `300m` for minutes",
        ),
        ("list: a b", "`list` must be a list, got `a b` | a b | write [\"a b\"]"),
        (
            "list:",
            "`list` has no value | list | write [] for an empty list, or remove the key to keep the default",
        ),
        (
            "list: [a, 7]",
            "`list[1]` must be a text, got the number `7` | 7 | put it in quotes: \"7\"",
        ),
        (
            "shape: very_square",
            "`shape` must be `round` or `very-square`, got `very_square` | very_square | did you mean `very-square`?",
        ),
        ("shape: 7", "`shape` must be `round` or `very-square`, got the number `7` | 7 | -"),
        ("inner: 7", "`inner` must be a mapping of `key: value` lines, got the number `7` | 7 | -"),
        ("inner:", "`inner` has no value | inner | remove the key to keep the default"),
        ("inner: {dep: 1}", "`inner.dep` is not a known key | dep | did you mean `deep`?"),
        (
            "zebra: 1",
            "`zebra` is not a known key | zebra | known here: flag, count, small, ratio, name, wait, maybe, list, shape, inner, map",
        ),
        ("map: {a: 300}", "`map.a` is too large, got `300` | 300 | -"),
    ] {
        assert_eq!(read(text).1, [problem], "{text}");
    }
}

#[test]
fn every_mistake_of_a_file_is_reported_in_one_run() {
    let (_, problems) = read(
        "flag: yes\ncount: -1\nname: &a x\nmaybe: *a\nlist: [1, b, [c]]\nshape: cube\n\
         inner: {deep: 1000, x: 1}\nflag: true\nwait: 5\n",
    );
    assert_eq!(problems.len(), 11, "{problems:#?}");
}

#[test]
fn what_no_placeholder_can_replace_is_still_reported_with_its_place() {
    #[derive(Debug, Deserialize)]
    struct Strict {
        #[expect(dead_code)]
        id: crate::ids::TaskId,
    }
    let read = |text: &str| {
        let document = Document::parse(text.as_bytes(), Limits::CONFIG).unwrap();
        let (value, problems) = document.read::<Vec<Strict>>();
        assert!(value.is_none());
        problems.into_sorted()[0].to_string()
    };
    assert_eq!(read("- {}"), "`[0]` needs the key `id`");
    assert!(read("- {id: a/b}").starts_with("`[0].id` `a/b` is no task id"));
}

/// YAML that is likely to get past the parser.
fn yamlish() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        "[a-z]{1,5}",
        "-?(0|[1-9][0-9]{0,17})",
        "-?(0|[1-9][0-9]{0,3})\\.[0-9]{1,3}(e[0-9]{1,2})?",
        "(yes|no|true|false|null|~|0x1f|0o17|é😀)",
        "'[^'\n]{0,6}'",
        "\"[^\"\\\\\n]{0,6}\"",
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        let keys = proptest::collection::btree_map("[a-z]{1,4}", inner.clone(), 0..4);
        let flow = keys.prop_map(|map| {
            let parts: Vec<String> = map.iter().map(|(k, v)| format!("{k}: {v}")).collect();
            format!("{{{}}}", parts.join(", "))
        });
        let list = proptest::collection::vec(inner, 0..4)
            .prop_map(|items| format!("[{}]", items.join(", ")));
        prop_oneof![flow, list]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(document) = Document::parse(&bytes, Limits::CONFIG) {
            let _ = document.read::<Sample>();
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-\\[\\]{}:,#&*!|>'\"%@`?~ \n\t\r\\\\a0é😀\u{feff}]{0,60}") {
        if let Ok(document) = Document::parse(text.as_bytes(), Limits::CONFIG) {
            let _ = document.read::<Sample>();
        }
    }

    /// Another parser by other people agrees on what a document says.
    #[test]
    fn accepted_documents_mean_what_another_reader_says(value in yamlish()) {
        let text = format!("k: {value}\n");
        let Ok(document) = Document::parse(text.as_bytes(), Limits::CONFIG) else { return Ok(()) };
        let (ours, problems) = document.read::<serde_json::Value>();
        prop_assert!(!problems.has_errors());
        let options = serde_saphyr::options! { strict_booleans: true };
        let theirs: serde_json::Value = serde_saphyr::from_str_with_options(&text, options).unwrap();
        prop_assert_eq!(ours.unwrap(), theirs, "{}", text);
    }
}
