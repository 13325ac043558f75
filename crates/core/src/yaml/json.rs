//! JSON by the same door: planners answer in it.
//!
//! YAML takes most JSON as it is, but not its surrogate pairs. So a text that
//! is JSON in full is walked as JSON. A text that only looks like JSON is left
//! to the YAML side, which has the better messages, unless it is so long that
//! the YAML parser would read for seconds before it says anything.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::problem::{Problem, Problems, Span};
use super::syntax;
use super::text::Limits;
use super::tree::{Entry, Kind, Node};

/// Up to here the YAML parser finds the words for what is no JSON.
const SHORT: usize = 1 << 20;

/// The tree of a JSON object or list, or why there is none; `None` if the text
/// is something else.
pub(super) fn parse(
    text: &str,
    limits: Limits,
    problems: &Problems,
) -> Option<Result<Node, Box<Problem>>> {
    let start = text.find(|c: char| !c.is_ascii_whitespace())?;
    if !text[start..].starts_with(['{', '[']) {
        return None;
    }
    // Refuses nesting beyond 128 by itself, so the walk below may recurse.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return (text.len() > SHORT).then(|| Err(Box::new(not_json(text, &error))));
    }
    let mut walk = Walk { text, at: start, limits, nodes: 0, problems, refused: None };
    match (walk.value(0), walk.refused) {
        (Some(node), _) => Some(Ok(node)),
        (None, refused) => refused.map(Err),
    }
}

fn not_json(text: &str, error: &serde_json::Error) -> Problem {
    let line: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let mut at = (line + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let reason = error.to_string();
    let reason = match reason.split(" at line ").next().unwrap_or_default() {
        early if early.starts_with("EOF") => "it ends too early",
        reason => reason,
    };
    Problem::error("", format!("this is not valid JSON: {reason}"))
        .at(Span::new(at, at + 1), "here")
        .hint("check the brackets, quotes and commas before this place")
}

/// Walks a text that is known to be JSON. It ends early, with `None`, only
/// when a limit is passed.
struct Walk<'t> {
    text: &'t str,
    at: usize,
    limits: Limits,
    nodes: usize,
    problems: &'t Problems,
    refused: Option<Box<Problem>>,
}

impl Walk<'_> {
    fn value(&mut self, depth: usize) -> Option<Node> {
        let start = self.at;
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            let here = Span::new(start, start);
            self.refused = Some(Box::new(syntax::too_many(here, self.limits.nodes)));
            return None;
        }
        let kind = match self.peek()? {
            b'{' | b'[' if depth >= self.limits.depth => {
                let here = Span::new(start, start);
                self.refused = Some(Box::new(syntax::too_deep(here, self.limits.depth)));
                return None;
            }
            b'{' => self.mapping(depth + 1)?,
            b'[' => self.sequence(depth + 1)?,
            b'"' => Kind::Scalar { text: self.string()?, quoted: true },
            _ => {
                let rest = &self.text[start..];
                let ends = |c: char| c == ',' || c == ']' || c == '}' || c.is_ascii_whitespace();
                let length = rest.find(ends).unwrap_or(rest.len());
                self.at += length;
                Kind::Scalar { text: rest[..length].to_owned(), quoted: false }
            }
        };
        Some(Node { span: Span::new(start, self.at), kind })
    }

    fn mapping(&mut self, depth: usize) -> Option<Kind> {
        let mut entries = Vec::new();
        let mut keys: BTreeMap<String, Span> = BTreeMap::new();
        self.step();
        while self.peek()? != b'}' {
            let start = self.at;
            let key = self.string()?;
            let key_span = Span::new(start, self.at);
            self.skip(b':')?;
            let value = self.value(depth)?;
            if let Some(first) = keys.get(&key) {
                self.problems.push(syntax::written_twice(&key, *first, key_span));
            } else {
                keys.insert(key.clone(), key_span);
                entries.push(Entry { key, key_span, value });
            }
            self.skip_comma()?;
        }
        self.at += 1;
        Some(Kind::Mapping(entries))
    }

    fn sequence(&mut self, depth: usize) -> Option<Kind> {
        let mut items = Vec::new();
        self.step();
        while self.peek()? != b']' {
            items.push(self.value(depth)?);
            self.skip_comma()?;
        }
        self.at += 1;
        Some(Kind::Sequence(items))
    }

    fn string(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        })?;
        self.at += end + 2;
        serde_json::from_str(&rest[..end + 2]).ok()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Over one byte and the blanks behind it.
    fn step(&mut self) {
        self.at += 1;
        self.blanks();
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.peek()? == byte).then(|| self.step())
    }

    fn skip_comma(&mut self) -> Option<()> {
        self.blanks();
        if self.peek()? == b',' {
            self.step();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Document, Problem};
    use super::*;

    /// What a tree says, as JSON again.
    fn value(node: &Node) -> serde_json::Value {
        match &node.kind {
            Kind::Mapping(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), value(&entry.value))).collect()
            }
            Kind::Sequence(items) => items.iter().map(value).collect(),
            Kind::Scalar { text, quoted: true } => serde_json::Value::String(text.clone()),
            Kind::Scalar { text, quoted: false } => serde_json::from_str(text).unwrap(),
            Kind::Refused => panic!("JSON has nothing to refuse"),
        }
    }

    fn tree(text: &str) -> Node {
        parse(text, Limits::PLAN, &Problems::default()).unwrap().unwrap()
    }

    #[test]
    fn what_json_can_write_is_read() {
        let text = "\n{\n\t\"a\" :\t\"x\\/y \\u00e9 \\ud83d\\ude00 \\\" \",\"b\":[1,-2.5e3,true,null,{}]}\n";
        let node = tree(text);
        assert_eq!(value(&node), serde_json::from_str::<serde_json::Value>(text).unwrap());
        let Kind::Mapping(entries) = &node.kind else { panic!("no mapping") };
        assert_eq!(&text[entries[1].value.span.start..entries[1].value.span.end][..3], "[1,");
    }

    #[test]
    fn what_is_wrong_in_json_is_told() {
        let problems = |text: &str| -> Vec<Problem> {
            match Document::parse(text.as_bytes(), Limits::PLAN) {
                Ok(document) => document.problems.into_sorted(),
                Err(problems) => problems,
            }
        };
        assert_eq!(problems("{\"a\": 1, \"a\": 2}")[0].message, "the key `a` is written twice");
        assert_eq!(
            problems("{\"a\": [1, 2}")[0].message,
            "a `[` is not closed, or a `,` is missing"
        );
        let long = format!("{{\"a\": [{}", "1,".repeat(SHORT));
        assert_eq!(problems(&long)[0].message, "this is not valid JSON: it ends too early");
        let many = format!("[{}1]", "1,".repeat(2_000_000));
        assert_eq!(problems(&many)[0].message, "the file has more than 1000000 values");
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(problems(&deep)[0].message, "values are nested more than 64 deep");
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                proptest::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_json_document_comes_through(json in any_json(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&json).unwrap()
            } else {
                json.to_string()
            };
            if text.starts_with(['{', '[']) {
                prop_assert_eq!(value(&tree(&text)), json);
            }
        }
    }
}
