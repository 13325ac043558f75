//! What is taken apart, and what is refused.

use super::{Node, Redirect, Unclear, Word, parse};

/// The words of every simple command in a line, in order.
fn commands(line: &str) -> Result<Vec<Vec<String>>, Unclear> {
    fn collect(node: &Node, found: &mut Vec<Vec<String>>) {
        match node {
            Node::Simple(simple) => {
                let text = |word: &Word| word.text().unwrap_or_else(|| "?".to_owned());
                found.push(simple.words.iter().map(text).collect());
            }
            Node::Pipeline(nodes) | Node::Sequence(nodes) => {
                for node in nodes {
                    collect(node, found);
                }
            }
            Node::Chain { first, rest } => {
                collect(first, found);
                for (_, node) in rest {
                    collect(node, found);
                }
            }
            Node::Not(body)
            | Node::Subshell { body, .. }
            | Node::Group { body, .. }
            | Node::For { body, .. } => collect(body, found),
            Node::Loop { condition, body, .. } => {
                collect(condition, found);
                collect(body, found);
            }
            Node::If { branches, otherwise, .. } => {
                for (condition, then) in branches {
                    collect(condition, found);
                    collect(then, found);
                }
                if let Some(node) = otherwise {
                    collect(node, found);
                }
            }
        }
    }
    let script = parse(line)?;
    let mut found = Vec::new();
    collect(&script.body, &mut found);
    Ok(found)
}

#[test]
fn every_command_is_found_with_its_words() {
    for (line, expected) in [
        ("a b", "a b"),
        ("a; b\nc", "a|b|c"),
        ("a && b || c | d |& e", "a|b|c|d|e"),
        ("(a; b) && { c; }", "a|b|c"),
        ("if a; then b; elif c; then d; else e; fi", "a|b|c|d|e"),
        ("while a; do b; done; until c\ndo d\ndone", "a|b|c|d"),
        ("for f in x y; do a; done", "a"),
        ("! a; time -p b", "a|b"),
        ("a 'b c' \"d e\" f\\ g h'i'j", "a b c d e f g hij"),
        ("a \"x\\\"y\\$z\\q\"", "a x\"y$z\\q"),
        ("te\\\nst \\\n a", "test a"),
        ("a # b; c\nd", "a|d"),
        ("a b#c '#d'", "a b#c #d"),
        ("a >b 2>&1 c <d e", "a c e"),
        ("a 1 2 3>x", "a 1 2"),
        ("a2>x", "a2"),
        ("a $b \"$c\" d$(e)", "a ? ? ?"),
        ("a \"cost: 5$\" $ x", "a cost: 5$ $ x"),
        ("HEAD@{1} a~b", "HEAD@{1} a~b"),
        ("A=1 B='x y' c d=e", "c d=e"),
        ("echo done if then }", "echo done if then }"),
        ("'if' a", "if a"),
        ("a <<E b\ntext; c\nE\nd", "a b|d"),
        ("a <<E1; b <<-'E2'\nx\nE1\n\ty\n\tE2\nc", "a|b|c"),
    ] {
        let found = commands(line).unwrap();
        let shown: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
        assert_eq!(shown.join("|"), expected, "{line:?}");
    }
}

#[test]
fn what_bash_may_read_otherwise_is_refused() {
    for line in [
        "echo \"$$(f\"",
        "echo $${f",
        "echo \"$({ a\ncat <<'E'\nx\nE\n}; b)\"",
        "",
        " ",
        "# a",
        "a &",
        "a & b",
        "a ;; b",
        "a; ; b",
        "; a",
        "a |",
        "a &&",
        "| a",
        "(a",
        "a)",
        "{ a }",
        "{ a;",
        "}",
        "fi",
        "if a; then fi",
        "if a; b; fi",
        "for f; do a; done",
        "for f in a do b; done",
        "case a in b) c;; esac",
        "select a in b; do c; done",
        "function a { b; }",
        "a() { b; }",
        "a (b)",
        "coproc a",
        "[[ a ]]",
        "((a))",
        "a $((1))",
        "a $[1]",
        "a ${b:-c}",
        "a ${!b}",
        "a ${b@P}",
        "a $'b'",
        "a $\"b\"",
        "a `b`",
        "a \"`b`\"",
        "a <(b)",
        "a >(b)",
        "a {b,c}",
        "a {1..3}",
        "a @(b|c)",
        "a 'b",
        "a \"b",
        "a \\",
        "a >",
        "a > ;",
        "a > 2> b",
        "a <<<2> b",
        "a <<",
        "a <<E",
        "a <<E\nb",
        "a <<E\n`b`\nE",
        "a <<E\n$(b)\nE",
        "echo \"$\\\n(b)\"",
        "echo $\\\n(b)",
        "echo $(\\\n(b))",
        "echo \"$\\\n{b:-$(c)}\"",
        "a <<E\nb\\\nE\nE",
        "a <<$E\nb\n$E",
        "a <<E 'b\nE\n'",
        "a <<E $(b\nE\n)",
        "a <<E \\\nb\nE",
        "$(a <<E)\nE",
        "a <&b",
        "a >&1x",
        "a 2>&1-",
        "a {x}>b",
        "a {x}<b",
        "a {x}>&2 b",
        "a {x\\\n}>b",
        "a {x}\\\n>b",
        "a {x[0]}>b",
        "a <&3",
        "a <>b",
        "a 0>b",
        "a 00>&3",
        "a 3<<E\nb\nE",
        "a;&> b c",
        "a \"$(b <<'E'\nx\nE c)\nE\n)\"",
        "a \"$(b <<-'E'\nx\n\tEc\nE\n)\"",
    ] {
        assert!(parse(line).is_err(), "{line:?}: {:?}", parse(line));
    }
    assert!(parse(&"(".repeat(5000)).is_err());
    assert!(parse(&"$(".repeat(5000)).is_err());
}

#[test]
fn the_text_of_a_here_document_is_kept() {
    let script = parse("a <<'E' > b\nx $y\n E\nE\n").unwrap();
    assert_eq!(script.texts, [super::HereText::Literal("x $y\n E\n".to_owned())]);
    let Node::Simple(simple) = script.body else { panic!("one command") };
    assert!(matches!(simple.redirects.as_slice(), [Redirect::Text(0), Redirect::Write(_)]));
    let script = parse("a <<E\nx $y\nE").unwrap();
    assert_eq!(script.texts, [super::HereText::Expanded("x $y\n".to_owned())]);
}
