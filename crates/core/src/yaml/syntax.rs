//! What the YAML parser complains about, in words for people.
//!
//! The parser stops at the first place that it cannot make sense of, which is
//! often just behind the mistake; the hints name the usual reason.

use super::problem::{Problem, Span};

/// Puts a complaint of the parser about the byte `at` into plain words.
pub(super) fn explain(text: &str, at: usize, complaint: &str) -> Box<Problem> {
    let has = |part: &str| complaint.contains(part);
    let (message, hint): (String, &str) = if has("mapping values are not allowed") {
        (
            "a `:` cannot stand here".into(),
            "put the value in quotes if it contains a `:`, or check how far this line is indented",
        )
    } else if has("illegal placement of ':'") {
        ("a `[` or `{` above this is not closed".into(), "add the missing `]` or `}`")
    } else if has("',' or ']'") {
        ("a `[` is not closed, or a `,` is missing".into(), "write lists as `[a, b, c]`")
    } else if has("',' or '}'") {
        ("a `{` is not closed, or a `,` is missing".into(), "write mappings as `{a: 1, b: 2}`")
    } else if has("expected node content") {
        ("a value is missing here".into(), "check the brackets and commas before this place")
    } else if has("misplaced bracket") {
        ("this bracket closes nothing".into(), "remove it, or put the value in quotes")
    } else if has("tabs disallowed") {
        ("a tab is used to indent this line".into(), "indent with spaces")
    } else if has("quoted scalar, found unexpected end") || has("indentation in quoted scalar") {
        ("this quote is never closed".into(), "add the closing quote")
    } else if has("unknown escape") {
        (
            "this text in double quotes contains a `\\` escape that YAML does not know".into(),
            "use single quotes, where `\\` stands for itself, or write `\\\\`",
        )
    } else if has("Unicode character escape") {
        ("this text contains a character code that does not exist".into(), "check the `\\u` codes")
    } else if has("trailing content after") {
        (
            "there is something behind the closing quote".into(),
            "a quote inside single quotes is written twice: 'it''s'",
        )
    } else if has("simple key expect") || has("could not find expected ':'") {
        return Box::new(
            Problem::error("", "this line is neither `key: value` nor part of the line above")
                .at(line_before(text, at), "no `:` here")
                .hint("write `key: value`, or indent the line if it goes on from the one above"),
        );
    } else if has("block sequence entries are not allowed") {
        ("a `-` cannot start a list here".into(), "put the list on its own lines below the key")
    } else if has("'-' indicator") {
        (
            "this line does not go on with the list above it".into(),
            "start it with `- `, or check how far it is indented",
        )
    } else if has("<document start>") || has("expected <block end>") || has("block mapping") {
        (
            "this line does not fit to the lines above it".into(),
            "keys that belong together start in the same column",
        )
    } else if has("unexpected character") {
        let first = text[at.min(text.len())..].chars().next().unwrap_or('?');
        (format!("a value cannot start with `{first}`"), "put the value in quotes")
    } else if has("unprintable character") {
        ("there is an unprintable character in the file".into(), "remove it")
    } else if has("unknown anchor") {
        (
            "`*` aliases are not allowed".into(),
            "if this is a text that starts with `*`, put it in quotes",
        )
    } else if has("recursion limit") {
        return Box::new(too_deep(first_character(text, at), 64));
    } else {
        (format!("this is not valid YAML: {complaint}"), "check the lines around this place")
    };
    Box::new(Problem::error("", message).at(first_character(text, at), "here").hint(hint))
}

pub(super) fn too_deep(span: Span, depth: usize) -> Problem {
    Problem::error("", format!("values are nested more than {depth} deep"))
        .at(Span::new(span.start, span.start + 1), "one too many")
}

pub(super) fn too_many(span: Span, most: usize) -> Problem {
    Problem::error("", format!("the file has more than {most} values"))
        .at(Span::new(span.start, span.start + 1), "reading stopped here")
}

pub(super) fn written_twice(key: &str, first: Span, second: Span) -> Problem {
    Problem::error("", format!("the key `{key}` is written twice"))
        .at(second, "second time")
        .also(Some(first), "first time")
        .hint("keep one of them")
}

/// The character at a place, or the last one if the text ends there.
fn first_character(text: &str, at: usize) -> Span {
    let at = at.min(text.len());
    if let Some(c) = text[at..].chars().next().filter(|c| *c != '\n' && *c != '\r') {
        return Span::new(at, at + c.len_utf8());
    }
    let end = text[..at].trim_end().len();
    let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
    Span::new(end - last, end)
}

/// The last line with something on it that ends before a place.
fn line_before(text: &str, at: usize) -> Span {
    let end = text[..at.min(text.len())].trim_end().len();
    let start = text[..end].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = text[start..end].len() - text[start..end].trim_start().len();
    Span::new(start + indent, end)
}

#[cfg(test)]
mod tests {
    use super::super::problem::Problems;
    use super::super::text::Limits;
    use super::super::tree;

    #[test]
    fn complaints_are_put_in_words_and_point_at_the_place() {
        for (text, message, at) in [
            ("é: [1, 2\nb: 3\n", "a `[` or `{` above this is not closed", ":"),
            ("é: \"x\n", "this quote is never closed", "\""),
            ("é:\n  b: \"x\n  c: 1\n", "this quote is never closed", "\""),
            ("é: b: c\n", "a `:` cannot stand here", ":"),
            ("é:\n\t- b\n", "a tab is used to indent this line", "-"),
            ("é: 'it's'\n", "there is something behind the closing quote", "s"),
            ("é: @x\n", "a value cannot start with `@`", "@"),
            ("- é\nb: 1\n", "this line does not go on with the list above it", "b"),
            ("é: {b: 1\n", "a `{` is not closed, or a `,` is missing", "1"),
            (
                "é: \"\\d\"\n",
                "this text in double quotes contains a `\\` escape that YAML does not know",
                "\"",
            ),
            ("é: [}\n", "a value is missing here", "}"),
            ("é: [x\n", "a `[` is not closed, or a `,` is missing", "x"),
            ("é: [b]]\n", "this bracket closes nothing", "]"),
            ("é: 1\nb\n", "this line is neither `key: value` nor part of the line above", "b"),
            ("é: - b\n", "a `-` cannot start a list here", "-"),
            ("  é: 1\nb: 2\n", "this line does not fit to the lines above it", "b"),
            ("é: *nope\n", "`*` aliases are not allowed", "*"),
        ] {
            let problem = tree::parse(text, Limits::CONFIG, &Problems::default()).unwrap_err();
            let span = problem.span.unwrap();
            assert_eq!(
                (problem.message.as_str(), &text[span.start..span.end]),
                (message, at),
                "{text:?}"
            );
        }
    }
}
