//! Text to tree: every value with its place in the file.
//!
//! The parser's events are put together here, and what a configuration should
//! not contain is refused on the way. The stack is a list on the heap and
//! bounded, so no file can exhaust the program's own.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::number::{Plain, resolve};
use super::problem::{Problem, Problems, Span};
use super::syntax;
use super::text::{Limits, Offsets};

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Mapping(Vec<Entry>),
    Sequence(Vec<Node>),
    /// `quoted` scalars are always text; others may be numbers and so on.
    Scalar {
        text: String,
        quoted: bool,
    },
    /// Something that was refused and reported; it stands for any value.
    Refused,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    /// Whether nothing was written here, or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, quoted: false } if resolve(text) == Plain::Null)
    }

    pub(super) fn key(&self, path: &[&str]) -> Option<Span> {
        let (first, rest) = path.split_first()?;
        let Kind::Mapping(entries) = &self.kind else { return None };
        let entry = entries.iter().find(|entry| entry.key == *first)?;
        if rest.is_empty() { Some(entry.key_span) } else { entry.value.key(rest) }
    }
}

/// Builds the tree of the one document in the text. An empty text is an empty
/// mapping. The error is the one that ends the reading; lesser ones go to
/// `problems`.
pub(super) fn parse(text: &str, limits: Limits, problems: &Problems) -> Result<Node, Box<Problem>> {
    let offsets = Offsets::of(text);
    let mut builder = Builder { text, limits, problems, open: Vec::new(), root: None, nodes: 0 };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, at) = event.map_err(|error| {
            syntax::explain(text, offsets.byte(error.marker().index()), error.info())
        })?;
        let span = Span::new(offsets.byte(at.start.index()), offsets.byte(at.end.index()));
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                problems.push(
                    Problem::error("", "the file has more than one document")
                        .at(span, "a second document starts here")
                        .hint("remove the `---` line and what follows it"),
                );
                break;
            }
        }
        builder.take(event, span)?;
    }
    Ok(builder
        .root
        .filter(|root| !root.is_null())
        .unwrap_or(Node { span: Span::new(0, 0), kind: Kind::Mapping(Vec::new()) }))
}

struct Builder<'t> {
    text: &'t str,
    limits: Limits,
    problems: &'t Problems,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
}

/// A collection whose end has not come yet.
enum Open {
    Sequence { span: Span, items: Vec<Node> },
    Mapping { span: Span, entries: Vec<Entry>, keys: BTreeMap<String, Span>, next: Next },
}

/// What a mapping waits for.
enum Next {
    Key,
    Value(String, Span),
    /// The value of a key that was refused.
    Dropped,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Box<Problem>> {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                self.refuse_extras(anchor, tag.is_some(), span);
                let quoted = style != ScalarStyle::Plain;
                let node = Node {
                    span: trimmed(self.text, span, style),
                    kind: Kind::Scalar { text: value.into_owned(), quoted },
                };
                self.place(node)?;
            }
            Event::Alias(_) => {
                self.problems.push(
                    Problem::error("", "`*` aliases are not allowed")
                        .at(span, "refers to another place")
                        .hint("write the value out here; if it is a text that starts with `*`, put it in quotes"),
                );
                self.place(Node { span, kind: Kind::Refused })?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_extras(anchor, tag.is_some(), span);
                self.enter(Open::Sequence { span, items: Vec::new() })?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_extras(anchor, tag.is_some(), span);
                self.enter(Open::Mapping {
                    span,
                    entries: Vec::new(),
                    keys: BTreeMap::new(),
                    next: Next::Key,
                })?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let node = closed(open, span);
                    self.place(node)?;
                }
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn refuse_extras(&self, anchor: usize, tagged: bool, span: Span) {
        let refused = if anchor != 0 {
            ("`&` anchors are not allowed", "write the value out where it is needed")
        } else if tagged {
            ("`!` tags are not allowed", "remove the tag, or put the value in quotes")
        } else {
            return;
        };
        self.problems.push(Problem::error("", refused.0).at(span, "here").hint(refused.1));
    }

    fn enter(&mut self, open: Open) -> Result<(), Box<Problem>> {
        if self.open.len() >= self.limits.depth {
            let (Open::Sequence { span, .. } | Open::Mapping { span, .. }) = open;
            return Err(Box::new(syntax::too_deep(span, self.limits.depth)));
        }
        self.open.push(open);
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, mut node: Node) -> Result<(), Box<Problem>> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(Box::new(syntax::too_many(node.span, self.limits.nodes)));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence { items, .. }) => items.push(node),
            Some(Open::Mapping { entries, keys, next, .. }) => {
                match std::mem::replace(next, Next::Key) {
                    Next::Key => *next = key(node, keys, self.problems),
                    Next::Value(key, key_span) => {
                        // A value that is not there is shown at its key.
                        if node.span.start == node.span.end && node.is_null() {
                            node.span = key_span;
                        }
                        entries.push(Entry { key, key_span, value: node });
                    }
                    Next::Dropped => {}
                }
            }
        }
        Ok(())
    }
}

/// Checks a key; says what to do with the value that follows it.
fn key(node: Node, keys: &mut BTreeMap<String, Span>, problems: &Problems) -> Next {
    let span = node.span;
    let Kind::Scalar { text, quoted } = node.kind else {
        if node.kind != Kind::Refused {
            problems.push(
                Problem::error("", "a key must be a word, not a list or a mapping")
                    .at(span, "used as a key")
                    .hint("text that starts with `[` or `{` needs quotes"),
            );
        }
        return Next::Dropped;
    };
    if text == "<<" && !quoted {
        problems.push(
            Problem::error("", "`<<` merge keys are not allowed")
                .at(span, "here")
                .hint("write the keys out in each place"),
        );
        return Next::Dropped;
    }
    if let Some(first) = keys.get(&text) {
        problems.push(syntax::written_twice(&text, *first, span));
        return Next::Dropped;
    }
    keys.insert(text.clone(), span);
    Next::Value(text, span)
}

/// The parser gives block collections an empty span; they reach from their
/// first to their last part.
fn closed(open: Open, end: Span) -> Node {
    let whole = |start: Span, last: Option<Span>| {
        let flow = start.end > start.start;
        Span::new(start.start, if flow { end.end } else { last.unwrap_or(start).end })
    };
    match open {
        Open::Sequence { span, items } => Node {
            span: whole(span, items.last().map(|item| item.span)),
            kind: Kind::Sequence(items),
        },
        Open::Mapping { span, entries, .. } => Node {
            span: whole(span, entries.last().map(|entry| entry.value.span)),
            kind: Kind::Mapping(entries),
        },
    }
}

/// The parser lets some scalars reach over the blanks and the comment behind
/// them; this cuts them to what people see as the value.
fn trimmed(text: &str, span: Span, style: ScalarStyle) -> Span {
    let Some(shown) = text.get(span.start..span.end) else { return span };
    let length = match style {
        ScalarStyle::DoubleQuoted if shown.starts_with('"') => {
            let mut escaped = false;
            shown[1..].find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            })
        }
        .map(|at| at + 2),
        ScalarStyle::SingleQuoted if shown.starts_with('\'') => {
            let inner = &shown.as_bytes()[1..];
            let mut at = 0;
            while at < inner.len() && (inner[at] != b'\'' || inner.get(at + 1) == Some(&b'\'')) {
                at += if inner[at] == b'\'' { 2 } else { 1 };
            }
            Some(at + 2)
        }
        _ => None,
    };
    let length = length.unwrap_or_else(|| shown.trim_end().len()).min(shown.len());
    Span::new(span.start, span.start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Node {
        let problems = Problems::default();
        let node = parse(text, Limits::CONFIG, &problems).unwrap();
        assert_eq!(problems.into_sorted(), []);
        node
    }

    /// Every problem as its message and the piece of text it points at.
    fn refused(text: &str) -> Vec<(String, String)> {
        let problems = Problems::default();
        if let Err(problem) = parse(text, Limits::CONFIG, &problems) {
            problems.push(*problem);
        }
        let shown = |span: Span| text[span.start..span.end].to_owned();
        problems
            .into_sorted()
            .into_iter()
            .map(|p| (p.message, p.span.map(shown).unwrap_or_default()))
            .collect()
    }

    #[test]
    fn spans_are_bytes_even_behind_wide_characters() {
        let text = "\u{feff}é: \"😀\" # ü\r\nb: [ 'it''s' , x y ]\r\nc:\n  - 😀😀: é\n";
        let Kind::Mapping(entries) = tree(text).kind else { panic!("no mapping") };
        let shown = |span: Span| &text[span.start..span.end];
        assert_eq!(shown(entries[0].key_span), "é");
        assert_eq!(shown(entries[0].value.span), "\"😀\"");
        assert_eq!(shown(entries[1].value.span), "[ 'it''s' , x y ]");
        let Kind::Sequence(items) = &entries[1].value.kind else { panic!("no list") };
        assert_eq!(shown(items[0].span), "'it''s'");
        assert_eq!(shown(items[1].span), "x y");
        assert_eq!(shown(entries[2].value.span), "- 😀😀: é");
    }

    #[test]
    fn what_makes_yaml_surprising_is_refused_all_at_once() {
        let text = "a: &x 1\nb: *x\n<<: {}\nc: !!str 3\nd: 1\nd: 2\n[e]: 3\n";
        let found = refused(text);
        assert_eq!(
            found.iter().map(|(m, at)| format!("{m} at {at}")).collect::<Vec<_>>(),
            [
                "`&` anchors are not allowed at &x 1",
                "`*` aliases are not allowed at *x",
                "`<<` merge keys are not allowed at <<",
                "`!` tags are not allowed at !!str 3",
                "the key `d` is written twice at d",
                "a key must be a word, not a list or a mapping at [e]",
            ]
        );
        assert_eq!(refused("a: 1\n---\nb: 2\n")[0].0, "the file has more than one document");
    }

    #[test]
    fn an_empty_file_is_an_empty_mapping() {
        for text in ["", "\n\n", "# only a comment\n", "---\n", "\u{feff}"] {
            assert_eq!(tree(text).kind, Kind::Mapping(Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn hostile_nesting_and_size_are_refused_quickly() {
        let bomb: String = std::iter::once("a0: &a0 [x, x]\n".to_owned())
            .chain((1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)))
            .collect();
        let deep = |open: &str| refused(&open.repeat(100_000))[0].0.clone();
        for open in ["[", "{a: ", "- ", "? ", ": "] {
            assert_eq!(deep(open), "values are nested more than 64 deep", "{open:?}");
        }
        assert!(refused(&bomb).len() > 40);
        let many = refused(&"- \n".repeat(250_000));
        assert_eq!(many[0].0, "the file has more than 200000 values");
    }
}
