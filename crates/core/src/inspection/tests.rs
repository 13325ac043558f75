//! Each rule stops something, and an ordinary change passes them all.

use crate::config;
use crate::ids::{Oid, Role};
use crate::lock_path::LockPath;
use crate::policy::PolicyRules;

use super::*;

const CONFIG: &str = r#"
schema_version: 2
permissions:
  allowed_paths: ["src/**", "tests/**", "web/**", "scripts/**"]
  blocked_paths: ["*.key", ".env*", "src/generated/**"]
validation:
  commit_format: { pattern: "^(feat|fix): .+", example: "feat: add a cache" }
  file_naming: { style: snake_case, enforce_for: ["src/**"] }
  require_tests:
    enabled: true
    source_patterns: ["src/**"]
    test_patterns: ["tests/**"]
worktree: { scratch: ["target"] }
"#;

fn policy() -> Policy {
    let config = config::read(CONFIG.as_bytes()).into_result().unwrap().0;
    let locks: Vec<LockPath> = ["src", "tests", "web", "scripts"]
        .iter()
        .map(|lock| LockPath::new(lock).unwrap())
        .collect();
    Policy::new(PolicyRules::of(&config, Role::Worker, &locks)).unwrap()
}

fn oid(number: u64) -> Oid {
    Oid::new(format!("{number:040x}")).unwrap()
}

fn side(kind: FileKind, content: &str) -> Side {
    let number = content.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    Side { kind, object: oid(number), size: content.len() as u64 }
}

fn lines(text: &str) -> Vec<Line> {
    (1..).zip(text.lines()).map(|(number, text)| Line { number, text: text.to_owned() }).collect()
}

fn added(path: &str, text: &str) -> FileChange {
    let lines = Lines { added: lines(text), ..Lines::default() };
    let after = Some(side(FileKind::Plain, text));
    FileChange { path: path.to_owned(), before: None, after, lines }
}

fn deleted(path: &str, text: &str) -> FileChange {
    let before = Some(side(FileKind::Plain, text));
    FileChange { path: path.to_owned(), before, after: None, lines: Lines::default() }
}

fn edited(path: &str, before: &str, after: &str) -> FileChange {
    FileChange {
        path: path.to_owned(),
        before: Some(side(FileKind::Plain, before)),
        after: Some(side(FileKind::Plain, after)),
        lines: Lines { added: lines(after), removed: lines(before), ..Lines::default() },
    }
}

fn of_kind(path: &str, kind: FileKind) -> FileChange {
    FileChange { after: Some(side(kind, "x")), ..added(path, "x") }
}

fn of_size(path: &str, size: u64) -> FileChange {
    let after = Side { size, ..side(FileKind::Plain, "x") };
    FileChange { after: Some(after), ..added(path, "x") }
}

fn binary(path: &str) -> FileChange {
    FileChange { lines: Lines { binary: true, ..Lines::default() }, ..added(path, "x") }
}

fn begins(path: &str, kind: FileKind, head: &[u8]) -> FileChange {
    let lines = Lines { binary: true, head: head.to_vec(), ..Lines::default() };
    FileChange { lines, ..of_kind(path, kind) }
}

fn commit(message: &str, changes: Vec<FileChange>) -> Commit {
    Commit {
        name: oid(9),
        parents: vec![oid(1)],
        author: "Agent <agent@example.com>".to_owned(),
        committer: "Agent <agent@example.com>".to_owned(),
        dates: vec![Some(1_000), Some(1_000)],
        unusual: Vec::new(),
        message: message.to_owned(),
        changes,
    }
}

/// Work in one commit, with a test.
fn work(changes: Vec<FileChange>) -> Work {
    let mut changes = changes;
    changes.push(added("tests/cache.rs", "#[test]\nfn holds() { assert_eq!(1, two()); }"));
    Work {
        descends: true,
        author: "Agent <agent@example.com>".to_owned(),
        time: Time { began: Some(500), ended: 2_000 },
        commits: vec![commit("feat: add a cache", changes.clone())],
        paths: changes.iter().map(|change| change.path.clone()).collect(),
        changes,
        too_much: Vec::new(),
    }
}

/// Work whose second commit took back what the first one brought.
fn taken_back(changes: Vec<FileChange>) -> Work {
    let mut work = work(Vec::new());
    work.commits.insert(0, commit("fix: try", changes));
    work
}

#[test]
fn ordinary_work_passes_without_a_word() {
    let change = vec![
        edited("src/cache.rs", "fn a() {}", "fn a() {}\nfn b() -> u32 { 2 }"),
        added("src/token_cache.rs", "pub struct Cache;\n// ======= not a merge"),
        deleted("src/old.rs", "fn c() {}"),
        edited("web/app.ts", "a()", "b()"),
    ];
    assert_eq!(inspect(&policy(), &work(change)), Inspection::default());
}

#[test]
fn each_rule_stops_something() {
    let key = format!("let key = \"{}\";", concat!("AKIA", "Z7Q2N4KD83HFMW5T"));
    let conflict = "fn a() {}\n<<<<<<< ours\n=======\n>>>>>>> theirs";
    for (name, work, expected) in [
        (
            "out of scope",
            work(vec![added("lib/a.rs", "")]),
            vec![
                "paths.not-allowed: `lib/a.rs` is not in the allowed paths. Write only to `src/**`, `tests/**`, `web/**`, `scripts/**`.",
            ],
        ),
        (
            "blocked",
            work(vec![edited("src/generated/a.rs", "", "x")]),
            vec![
                "paths.blocked: `src/generated/a.rs` matches the blocked path `src/generated/**`. Leave it as it is; if the task needs it, say so in your answer.",
            ],
        ),
        (
            "a protected name",
            work(vec![added("src/.mcp.json", "{}")]),
            vec![
                "paths.protected: src/.mcp.json: `.mcp.json` is never changed by agents. Leave it as it is.",
            ],
        ),
        (
            "a strange path",
            work(vec![added("src/a\nb.rs", "")]),
            vec!["paths.strange: src/a\\nb.rs: the path is not plain. Use plain names."],
        ),
        (
            "a symbolic link",
            work(vec![of_kind("src/link", FileKind::Link)]),
            vec!["changes.kind: `src/link` is a symbolic link or submodule. Commit plain files."],
        ),
        (
            "a submodule",
            work(vec![of_kind("src/sub", FileKind::Submodule)]),
            vec!["changes.kind: `src/sub` is a symbolic link or submodule. Commit plain files."],
        ),
        (
            "build output",
            work(vec![added("target/a", "")]),
            vec!["paths.not-allowed: `target/a` is build output. Take it out of the commit."],
        ),
        (
            "a name in another style",
            work(vec![added("src/TokenCache.rs", "")]),
            vec![
                "names.style: src/TokenCache.rs: `TokenCache.rs` is not named in snake_case. Name new files like `token_cache`.",
            ],
        ),
        (
            "a binary file",
            work(vec![binary("src/tool")]),
            vec![
                "changes.binary: `src/tool` is a binary file. Commit sources, not what is made from them.",
            ],
        ),
        (
            "a program that is called a picture",
            work(vec![begins("web/tool.png", FileKind::Plain, b"\x7fELF\x02\x01\x01\0")]),
            vec![
                "changes.binary: `web/tool.png` is a binary file, and not of the kind that its ending says.",
            ],
        ),
        (
            "a picture that is to be run",
            work(vec![begins("web/a.png", FileKind::Executable, b"\x89PNG\r\n\x1a\n")]),
            vec![
                "changes.binary: `web/a.png` is executable, and such files never are. Take the mode back.",
            ],
        ),
        (
            "a program that is called a picture and was taken back",
            taken_back(vec![begins("web/tool.gif", FileKind::Plain, b"\x7fELF")]),
            vec![
                "changes.binary: `web/tool.gif` is a binary file, and not of the kind that its ending says. (in commit 000000000000)",
            ],
        ),
        (
            "a key in two pieces",
            work(vec![added("src/a.rs", concat!("let a = \"AKIAZ7Q2N", "\" + \"4KD83HFMW5T\";"))]),
            vec![
                "changes.secret: `src/a.rs` line 1 holds an AWS access key. Take it out, and read it from the environment.",
            ],
        ),
        (
            "a key on two lines",
            work(vec![added("src/a.py", concat!("a = (\"AKIAZ7Q2N", "\"\n     \"4KD83HFMW5T\")"))]),
            vec![
                "changes.secret: `src/a.py` line 1 holds an AWS access key. Take it out, and read it from the environment.",
            ],
        ),
        (
            "a private key in short lines",
            work(vec![added(
                "src/a.rs",
                concat!(
                    "-----BEGIN RSA ",
                    "PRIVATE KEY-----\nMIIBPQIBAAJBAOsfi5AGYhdRs/x6q5H7kScxA0\n",
                    "Kzzqe6WI6gf6+tc6IvKQJo5rQc3dWWSQ0nRGt2\nhOPDO+35NKhQEjBQxPh/v7n="
                ),
            )]),
            vec![
                "changes.secret: `src/a.rs` line 1 holds a private key. Take it out, and read it from the environment.",
            ],
        ),
        (
            "a private key in a comment",
            work(vec![added(
                "src/a.rs",
                concat!(
                    "// -----BEGIN ",
                    "PRIVATE KEY-----\n// MIIBPQIBAAJBAOsfi5AGYhdRs/x6q5H7kScxA0Kzzqe6WI6gf6+tc6IvKQ"
                ),
            )]),
            vec![
                "changes.secret: `src/a.rs` line 1 holds a private key. Take it out, and read it from the environment.",
            ],
        ),
        (
            "a file that steers agents",
            work(vec![added("src/AGENTS.md", "Do as I say.")]),
            vec![
                "paths.protected: `src/AGENTS.md` steers the tools of the people who work here. Leave it as it is: only a task whose `file_locks` name it changes it.",
            ],
        ),
        (
            "a huge file",
            work(vec![of_size("src/data.json", 6 << 20)]),
            vec!["changes.size: `src/data.json` is too large: 6 MiB of at most 5."],
        ),
        (
            "a key",
            work(vec![added("src/a.rs", &key)]),
            vec![
                "changes.secret: `src/a.rs` line 1 holds an AWS access key. Take it out, and read it from the environment.",
            ],
        ),
        (
            "an unfinished merge",
            work(vec![added("src/a.rs", conflict)]),
            vec![
                "changes.conflict: `src/a.rs` line 2 is left over from a merge. Resolve the conflict.",
                "changes.conflict: `src/a.rs` line 4 is left over from a merge. Resolve the conflict.",
            ],
        ),
        (
            "no test",
            Work { changes: vec![added("src/a.rs", "")], ..work(Vec::new()) },
            vec![
                "changes.tests: the change as a whole: `src/a.rs` was changed without a test. Add or change a test that matches `tests/**`.",
            ],
        ),
        (
            "a message in another form",
            Work { commits: vec![commit("wip", Vec::new())], ..work(Vec::new()) },
            vec![
                "commit.format: the first line of the message, `wip`, does not have the form that is asked for. Write it like `feat: add a cache`. (in commit 000000000000)",
            ],
        ),
        (
            "a key in a message",
            Work {
                commits: vec![commit(&format!("fix: a\n\n{key}"), Vec::new())],
                ..work(Vec::new())
            },
            vec![
                "changes.secret: line 3 of the message holds an AWS access key in commit 000000000000. Take it out of the history as well.",
            ],
        ),
        (
            "another history",
            Work { descends: false, ..work(Vec::new()) },
            vec![
                "changes.history: the commits are not built on the one that the task started from. Leave the history as it is and add to it.",
            ],
        ),
        (
            "too many commits",
            Work { too_much: vec![TooMuch::Commits { most: 200 }], ..work(Vec::new()) },
            vec![
                "changes.size: there are more than 200 commits, too much to be looked over. Hand over less at once.",
            ],
        ),
        (
            "a key that was taken back",
            taken_back(vec![added("src/a.rs", &key)]),
            vec![
                "changes.secret: `src/a.rs` line 1 holds an AWS access key in commit 000000000000. Take it out of the history as well.",
            ],
        ),
        (
            "a blocked file that was taken back",
            taken_back(vec![added("src/.env.local", "A=1")]),
            vec![
                "paths.blocked: `src/.env.local` matches the blocked path `.env*`. Leave it as it is; if the task needs it, say so in your answer. (in commit 000000000000)",
            ],
        ),
        (
            "a link that became a file",
            {
                let mut work = work(vec![added("src/a.rs", "")]);
                work.commits.insert(0, commit("fix: a", vec![of_kind("src/a.rs", FileKind::Link)]));
                work
            },
            vec![
                "changes.kind: `src/a.rs` is a symbolic link or submodule. Commit plain files. (in commit 000000000000)",
            ],
        ),
        (
            "a file out of scope that was taken back",
            taken_back(vec![added("lib/a.rs", "")]),
            vec![
                "paths.not-allowed: `lib/a.rs` is not in the allowed paths. Write only to `src/**`, `tests/**`, `web/**`, `scripts/**`. (in commit 000000000000)",
            ],
        ),
        (
            "a binary file that was taken back",
            taken_back(vec![binary("src/tool")]),
            vec![
                "changes.binary: `src/tool` is a binary file. Commit sources, not what is made from them. (in commit 000000000000)",
            ],
        ),
        (
            "a name that looks like another",
            work(vec![added("src/p\u{430}y.rs", "")]),
            vec![
                "names.confusable: `src/p\u{430}y.rs`: the name `p\u{430}y.rs` mixes letters of alphabets that look alike. Use a plain name.",
            ],
        ),
        (
            "two names that are one elsewhere",
            work(vec![added("web/App.ts", ""), added("web/app.ts", "")]),
            vec![
                "names.confusable: `web/App.ts` and `web/app.ts` are the same on some machines. Use another name.",
            ],
        ),
        (
            "a private key",
            work(vec![added(
                "src/a.rs",
                &format!(
                    "{}\n{}",
                    concat!("-----BEGIN RSA ", "PRIVATE KEY-----"),
                    concat!(
                        "MIIBPQIBAAJBAOsfi5AGYhdRs/",
                        "x6q5H7kScxA0Kzzqe6WI6gf6+tc6IvKQJo5rQc3dWWSQ0nRGt2hOPDO+35NKhQEjBQxPh/v7n"
                    )
                ),
            )]),
            vec![
                "changes.secret: `src/a.rs` line 1 holds a private key. Take it out, and read it from the environment.",
            ],
        ),
        (
            "somebody else's name",
            Work {
                commits: vec![Commit {
                    author: "Linus <l@example.com>".to_owned(),
                    ..commit("fix: a", Vec::new())
                }],
                ..work(Vec::new())
            },
            vec![
                "commit.author: commit 000000000000 names `Linus <l@example.com>` as its author, not `Agent <agent@example.com>`. Commit as you are configured to.",
            ],
        ),
        (
            "committed as somebody else",
            Work {
                commits: vec![Commit {
                    committer: "Linus <l@example.com>".to_owned(),
                    ..commit("fix: a", Vec::new())
                }],
                ..work(Vec::new())
            },
            vec![
                "commit.author: commit 000000000000 names `Linus <l@example.com>` as its committer, not `Agent <agent@example.com>`. Commit as you are configured to.",
            ],
        ),
        (
            "a forged signature",
            Work {
                commits: vec![Commit {
                    unusual: vec!["gpgsig".to_owned()],
                    ..commit("fix: a", Vec::new())
                }],
                ..work(Vec::new())
            },
            vec![
                "commit.headers: the commit has more than git gives an agent's commits: `gpgsig`. Commit with `git commit -m \"...\"`. (in commit 000000000000)",
            ],
        ),
        (
            "a message that steers the terminal",
            Work { commits: vec![commit("fix: a\n\n\u{1b}[2Jb", Vec::new())], ..work(Vec::new()) },
            vec![
                "commit.message: line 3 of the message has characters in it that steer a terminal or turn the text around. Write plain text. (in commit 000000000000)",
            ],
        ),
        (
            "what is hidden behind a zero byte",
            Work { commits: vec![commit("fix: a\0b", Vec::new())], ..work(Vec::new()) },
            vec![
                "commit.message: line 1 of the message has characters in it that steer a terminal or turn the text around. Write plain text. (in commit 000000000000)",
            ],
        ),
        (
            "a second history",
            Work {
                commits: vec![Commit { parents: Vec::new(), ..commit("fix: a", Vec::new()) }],
                ..work(Vec::new())
            },
            vec![
                "changes.history: commit 000000000000 has no parent: it brings a history of its own. Build on the commit that the task started from.",
            ],
        ),
        (
            "a huge file that was taken back",
            taken_back(vec![of_size("src/data.json", 7 << 20)]),
            vec![
                "changes.size: `src/data.json` is too large: 7 MiB of at most 5 (in commit 000000000000).",
            ],
        ),
    ] {
        assert_eq!(told(&inspect(&policy(), &work).violations), expected, "{name}");
    }
}

#[test]
fn mistakes_that_were_repaired_are_forgiven() {
    for (name, change) in [
        ("a name", added("src/TokenCache.rs", "")),
        ("a conflict", added("src/a.rs", "<<<<<<< ours")),
        ("a test", added("src/a.rs", "#[ignore]")),
    ] {
        let found = inspect(&policy(), &taken_back(vec![change]));
        assert_eq!(found, Inspection::default(), "{name}");
    }
}

#[test]
fn what_is_worth_a_look_is_remarked() {
    let token = concat!("eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0NSJ9.0123456789ab");
    let made_executable = FileChange {
        after: Some(side(FileKind::Executable, "b")),
        ..edited("scripts/run", "a", "b")
    };
    for (name, change, expected) in [
        ("a mode", made_executable, vec!["changes.mode: `scripts/run` was made executable."]),
        (
            "a picture",
            binary("web/logo.PNG"),
            vec!["changes.binary: `web/logo.PNG` is a binary file."],
        ),
        (
            "a picture that begins as one",
            begins("web/a.webp", FileKind::Plain, b"RIFF\x0a\x01\0\0WEBPVP8 "),
            vec!["changes.binary: `web/a.webp` is a binary file."],
        ),
        (
            "a size",
            of_size("web/data.json", 1 << 20),
            vec!["changes.size: `web/data.json` is large: 1024 KiB."],
        ),
        (
            "a token",
            added("web/a.ts", token),
            vec!["changes.secret: `web/a.ts` line 1 may hold a JSON web token."],
        ),
        (
            "a direction",
            added("web/a.ts", "a\u{202e}b"),
            vec![
                "changes.direction: `web/a.ts` line 1 contains characters that change the reading direction.",
            ],
        ),
        (
            "a test that is gone",
            deleted("tests/old.rs", "x"),
            vec!["tests.deleted: `tests/old.rs` was deleted."],
        ),
        (
            "a skipped Rust test",
            edited("tests/a.rs", "", "#[ignore]"),
            vec!["tests.skipped: `tests/a.rs` line 1 skips a Rust test."],
        ),
        (
            "a skipped Python test",
            edited("web/test_a.py", "", "@pytest.mark.skip"),
            vec!["tests.skipped: `web/test_a.py` line 1 skips a Python test."],
        ),
        (
            "a skipped JavaScript test",
            edited("web/a.test.ts", "", "it.skip('a', f)"),
            vec!["tests.skipped: `web/a.test.ts` line 1 skips a JavaScript test."],
        ),
        (
            "a skipped Go test",
            edited("web/a_test.go", "", "\tt.Skip()"),
            vec!["tests.skipped: `web/a_test.go` line 1 skips a Go test."],
        ),
        (
            "a skipped Java test",
            edited("web/ATest.java", "", "@Disabled"),
            vec!["tests.skipped: `web/ATest.java` line 1 skips a test of the JVM."],
        ),
        (
            "a hollow test",
            edited("web/test_a.py", "assert a == 2", "assert True"),
            vec!["tests.hollow: `web/test_a.py` line 1 asserts what is always true."],
        ),
        (
            "fewer assertions",
            edited("tests/a.rs", "assert_eq!(a, 1);\nassert!(b);", "assert!(b);"),
            vec!["tests.weaker: `tests/a.rs` has 1 fewer assertion."],
        ),
        (
            "fewer tests",
            edited("web/a.rs", "#[test]\n#[test]", ""),
            vec!["tests.fewer: `web/a.rs` has 2 fewer tests."],
        ),
        (
            "a check that cannot fail",
            edited("scripts/check.sh", "cargo test", "cargo test || true"),
            vec![
                "tests.harmless: `scripts/check.sh` line 1 lets a command fail without consequence.",
            ],
        ),
    ] {
        let found = inspect(&policy(), &work(vec![change]));
        assert_eq!(told(&found.violations), Vec::<String>::new(), "{name}");
        assert_eq!(told(&found.remarks), expected, "{name}");
    }
}

#[test]
fn a_date_at_which_nobody_worked_is_remarked() {
    for (dates, expected) in [
        (vec![Some(1_000), Some(1_500)], 0),
        (vec![Some(500), Some(2_000 + 3_000)], 0),
        (vec![Some(-9_000), Some(1_000)], 1),
        (vec![Some(1_000), Some(9_000)], 1),
        (vec![None, Some(1_000)], 1),
    ] {
        let mut work = work(Vec::new());
        work.commits[0].dates.clone_from(&dates);
        let remarks = inspect(&policy(), &work).remarks;
        assert_eq!(remarks.len(), expected, "{dates:?}: {remarks:?}");
        assert!(remarks.iter().all(|remark| remark.rule == "commit.date"));
    }
}

#[test]
fn code_that_names_the_head_of_a_key_holds_none() {
    let head = concat!("-----BEGIN RSA ", "PRIVATE KEY-----");
    let code = format!("if text.starts_with(\"{head}\") {{\n    return read(text);\n}}");
    assert_eq!(inspect(&policy(), &work(vec![added("src/a.rs", &code)])), Inspection::default());
}

#[test]
fn a_key_in_a_line_without_end_is_found_wherever_it_stands() {
    let filler = "var a=[0,1,2];".repeat(((5 << 20) - 100) / 28);
    let line = format!("{filler}\"{}\"{filler}", concat!("AKIA", "Z7Q2N4KD83HFMW5T"));
    let found = inspect(&policy(), &work(vec![added("web/all.min.js", &line)]));
    assert_eq!(
        told(&found.violations),
        [
            "changes.secret: `web/all.min.js` line 1 holds an AWS access key. Take it out, and read it from the environment."
        ]
    );
}

/// Ways to write a key so that nobody sees it; each says what it holds.
#[test]
fn a_key_is_found_however_it_is_written() {
    let key = concat!("AKIA", "Z7Q2N4KD83HFMW5T");
    let (first, second, third) = (&key[..6], &key[6..12], &key[12..]);
    let each = |one: &dyn Fn(char) -> String| key.chars().map(one).collect::<String>();
    let listed = |one: &dyn Fn(char) -> String| key.chars().map(one).collect::<Vec<_>>().join(", ");
    let base_64 = concat!("QUtJQVo3U", "TJONEtEODNIRk1XNVQ=");
    let twice = concat!("UVV0SlFWbzNVVEpP", "TkV0RU9ETklSazFYTlZRPQ==");
    for (name, text) in [
        ("on three lines", format!("a = (\"{first}\"\n  \"{second}\"\n  \"{third}\")")),
        ("added up", format!("a = \"{first}\" +\n  \"{second}\" +\n  \"{third}\"")),
        ("one after another", format!("a = \"{first}\"\na += \"{second}\"\na += \"{third}\"")),
        ("a list", format!("a = ['{first}', '{second}', '{third}'].join('')")),
        ("in Python", format!("a = ''.join(['{first}', '{second}', '{third}'])")),
        ("in PHP", format!("$a = implode('', ['{first}', '{second}{third}']);")),
        ("by concat", format!("a = \"{first}\".concat(\"{second}\", \"{third}\")")),
        ("behind the end of a line", format!("a = \"Your key:\\n{key}\"")),
        ("in a name", format!("a = old_{key}_2")),
        ("in hexadecimal", format!("a = \"{}\"", each(&|c| format!("{:02x}", u32::from(c))))),
        ("by numbers", format!("a = \"{}\"", each(&|c| format!("\\x{:02x}", u32::from(c))))),
        ("one by its number", format!("a = \"\\u0041{}\"", &key[1..])),
        ("as an address", format!("a = \"{}\"", each(&|c| format!("%{:02X}", u32::from(c))))),
        ("for a page", each(&|c| format!("&#{};", u32::from(c)))),
        ("a list of numbers", format!("a = [{}]", listed(&|c| u32::from(c).to_string()))),
        ("a list of bytes", format!("a = {{{}}}", listed(&|c| format!("{:#04x}", u32::from(c))))),
        ("a list of signs", format!("a = [{}]", listed(&|c| format!("'{c}'")))),
        ("with what nobody sees", format!("a = \"{first}\u{200b}{second}\u{ad}{third}\"")),
        ("in base 64", format!("a = \"{base_64}\"")),
        ("in base 64 twice", format!("a = \"{twice}\"")),
    ] {
        let found = inspect(&policy(), &work(vec![added("src/a.py", &text)]));
        let told = told(&found.violations);
        assert!(told.iter().any(|it| it.contains("an AWS access key")), "{name}: {text}: {told:?}");
    }
}

#[test]
fn a_private_key_in_place_of_code_that_names_its_head_is_new() {
    let head = concat!("-----BEGIN RSA ", "PRIVATE KEY-----");
    let body = "MIIBPQIBAAJBAOsfi5AGYhdRs/x6q5H7kScxA0Kzzqe6WI6gf6+tc6IvKQJo5rQc3dWWSQ0nRG";
    let code = format!("if text.startswith('{head}'):");
    let change = edited("src/a.py", &code, &format!("{head}\n{body}"));
    let found = inspect(&policy(), &work(vec![change]));
    assert_eq!(
        told(&found.violations),
        [
            "changes.secret: `src/a.py` line 1 holds a private key. Take it out, and read it from the environment."
        ]
    );
    let moved = edited("src/a.py", &format!("{head}\n{body}"), &format!("  {head}\n  {body}"));
    assert_eq!(inspect(&policy(), &work(vec![moved])), Inspection::default());
}

#[test]
fn a_key_in_the_name_of_a_file_is_found() {
    let path = format!("src/{}.txt", concat!("AKIA", "Z7Q2N4KD83HFMW5T").to_lowercase());
    assert_eq!(inspect(&policy(), &work(vec![added(&path, "")])), Inspection::default());
    let path = format!("web/{}.txt", concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz"));
    for work in [work(vec![added(&path, "")]), taken_back(vec![added(&path, "")])] {
        let told = told(&inspect(&policy(), &work).violations);
        assert!(told[0].starts_with("changes.secret: the name of `web/"), "{told:?}");
    }
}

#[test]
fn a_test_may_move_to_where_tests_are() {
    let moved = |to: &str| work(vec![deleted("tests/a.rs", "same"), added(to, "same")]);
    assert_eq!(inspect(&policy(), &moved("tests/b.rs")), Inspection::default());
    let away = inspect(&policy(), &moved("src/b.rs"));
    assert_eq!(
        told(&away.remarks),
        ["tests.moved: `tests/a.rs` became `src/b.rs`, which is not a test file."]
    );
}

#[test]
fn what_was_there_before_is_nobodys_fault() {
    let key = concat!("AKIA", "Z7Q2N4KD83HFMW5T");
    let large = |path: &str| of_size(path, 6 << 20);
    let was_large = FileChange { before: large("x").after, after: None, ..added("src/a.json", "") };
    for (name, changes) in [
        ("a key that moved", vec![deleted("src/a.rs", key), added("src/b.rs", key)]),
        ("a key in a line that changed", vec![edited("src/a.rs", key, &format!("    {key},"))]),
        ("a large file that moved", vec![was_large, large("src/b.json")]),
    ] {
        assert_eq!(inspect(&policy(), &work(changes)), Inspection::default(), "{name}");
    }
}

#[test]
fn a_flood_of_findings_is_counted() {
    let changes = (0..60).map(|at| added(&format!("lib/{at}"), "")).collect();
    let violations = inspect(&policy(), &work(changes)).violations();
    assert_eq!((violations.len(), violations[50].as_str()), (51, "and 10 more"));
}

#[test]
fn merges_are_remarked() {
    let mut work = work(Vec::new());
    work.commits[0].parents.push(oid(2));
    let found = inspect(&policy(), &work);
    assert_eq!(told(&found.remarks), ["commit.merge: commit 000000000000 is a merge."]);
    assert!(found.violations.is_empty());
}
