//! JSON by the same door: planners answer in it.
//!
//! YAML takes most JSON as it is, but not its surrogate pairs. So a text that
//! is JSON in full is walked as JSON; anything else is left to the YAML side,
//! which has the better messages.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;

use super::problem::Span;
use super::text::Limits;
use super::tree::{Entry, Kind, Node};

/// The tree of a JSON object or list, or `None` if the text is something else
/// or more than the limits allow: then the YAML side finds the words for it.
pub(super) fn parse(text: &str, limits: Limits) -> Option<Node> {
    let start = text.find(|c: char| !c.is_ascii_whitespace())?;
    if !text[start..].starts_with(['{', '[']) {
        return None;
    }
    // Refuses nesting beyond 128 by itself, so the walk below may recurse.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut walk = Walk { text, at: start, nodes: limits.nodes };
    walk.value(limits.depth)
}

/// Walks a text that is known to be JSON.
struct Walk<'t> {
    text: &'t str,
    at: usize,
    nodes: usize,
}

impl Walk<'_> {
    fn value(&mut self, depth: usize) -> Option<Node> {
        self.nodes = self.nodes.checked_sub(1)?;
        let start = self.at;
        let kind = match self.peek()? {
            b'{' => self.mapping(depth.checked_sub(1)?)?,
            b'[' => self.sequence(depth.checked_sub(1)?)?,
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
        let mut keys = BTreeSet::new();
        self.step();
        while self.peek()? != b'}' {
            let start = self.at;
            let key = self.string()?;
            let key_span = Span::new(start, self.at);
            if !keys.insert(key.clone()) {
                return None;
            }
            self.skip(b':')?;
            let value = self.value(depth)?;
            entries.push(Entry { key, key_span, value });
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

    #[test]
    fn what_json_can_write_is_read() {
        let text = "\n{\n\t\"a\" :\t\"x\\/y \\u00e9 \\ud83d\\ude00 \\\" \",\"b\":[1,-2.5e3,true,null,{}]}\n";
        let node = parse(text, Limits::PLAN).unwrap();
        assert_eq!(value(&node), serde_json::from_str::<serde_json::Value>(text).unwrap());
        let Kind::Mapping(entries) = &node.kind else { panic!("no mapping") };
        assert_eq!(&text[entries[1].value.span.start..entries[1].value.span.end][..3], "[1,");
    }

    #[test]
    fn what_is_wrong_in_json_is_told_by_the_yaml_side() {
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
                prop_assert_eq!(value(&parse(&text, Limits::PLAN).unwrap()), json);
            }
        }
    }
}
