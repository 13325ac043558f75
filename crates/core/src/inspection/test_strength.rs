//! Tests that were deleted, skipped or weakened.
//!
//! All of it is sometimes right, so it is remarked and not refused: a validator
//! and the person have to look. Languages are read by the look of single lines,
//! which finds what is done in the open and nothing that is hidden well.

use std::sync::{LazyLock, OnceLock};

use regex::Regex;

use crate::policy::Policy;

use super::windows::beginning;
use super::{FileChange, Inspection, Line};

/// How a line makes tests weaker.
struct Sign {
    rule: &'static str,
    meaning: &'static str,
    /// Endings of the files it counts in; empty for all test files.
    endings: &'static [&'static str],
    pattern: &'static str,
    #[cfg(test)]
    examples: &'static [&'static str],
}

macro_rules! signs {
    ($($rule:literal $meaning:literal $endings:expr, $pattern:literal, $examples:expr;)*) => {
        const SIGNS: &[Sign] = &[$(Sign {
            rule: $rule,
            meaning: $meaning,
            endings: $endings,
            pattern: $pattern,
            #[cfg(test)]
            examples: $examples,
        },)*];
    };
}

const SCRIPT: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];

signs! {
    "tests.skipped" "skips a Rust test" &["rs"], r"#!?\[(cfg_attr\(.*)?ignore\b", &["#[ignore]", "    #[ignore = \"slow\"]", "#[cfg_attr(unix, ignore)]"];
    "tests.skipped" "skips a Python test" &["py"], r"@?(pytest\.mark\.(skip|skipif|xfail)\b|unittest\.(skip|expectedFailure)|pytest\.skip\(|self\.skipTest\()", &["@pytest.mark.skip(reason='x')", "@unittest.skipIf(True, 'x')", "    self.skipTest('x')"];
    "tests.skipped" "skips a JavaScript test" SCRIPT, r"\b((it|test|describe|suite|context)\.(skip|todo|fails)\b|x(it|test|describe)\s*\(|this\.skip\(\))", &["it.skip('a', () => {", "xit('a'", "  xdescribe (\"a\""];
    "tests.skipped" "leaves out all other JavaScript tests" SCRIPT, r"\b((it|test|describe|suite|context)\.only\b|f(it|describe)\s*\()", &["describe.only('a'", "fit('a'"];
    "tests.skipped" "skips a Go test" &["go"], r"\b[tb]\.(Skip|Skipf|SkipNow)\(", &["\tt.Skip(\"later\")", "t.SkipNow()"];
    "tests.skipped" "leaves a Go file out of the build" &["go"], r"^//\s*(go:build|\+build)\s+(ignore|never|!\S+)", &["//go:build ignore"];
    "tests.skipped" "skips a test of the JVM" &["java", "kt", "scala", "groovy"], r"@(Disabled|Ignore)\b", &["@Disabled(\"x\")", "@Ignore"];
    "tests.skipped" "skips a .NET test" &["cs", "fs", "vb"], r"\[(Ignore|Explicit)\b|\b(Fact|Theory)\(\s*Skip\s*=", &["[Fact(Skip = \"x\")]", "[Ignore(\"x\")]"];
    "tests.skipped" "skips a Ruby test" &["rb"], r"^\s*(x(it|describe|context)\b|(skip|pending)\b)", &["  xit 'a' do", "  skip 'x'"];
    "tests.skipped" "skips a PHP test" &["php"], r"->markTest(Skipped|Incomplete)\(", &["$this->markTestSkipped('x');"];
    "tests.skipped" "skips a C++ test" &["cc", "cpp", "cxx", "h", "hpp"], r"\bGTEST_SKIP\(|\bTEST(_[FP])?\(.*\bDISABLED_", &["TEST(Suite, DISABLED_a) {", "GTEST_SKIP() << 1;"];
    "tests.hollow" "asserts what is always true" &[], r"(?i)\bassert!?\s*\(?\s*true\s*\)?\s*(,.*)?[;)]*\s*$|\bassert_?(true|that)\(\s*true\s*[,)]|\bexpect\(\s*true\s*\)\.|\bassert_?(eq|equals?)!?\(\s*(1\s*,\s*1|true\s*,\s*true)\s*[,)]", &["    assert True", "assert!(true);", "expect(true).toBe(true)", "self.assertTrue(True)", "assert_eq!(1, 1);", "assertEquals(1, 1)"];
}

/// Files that say how tests are run, and lines that keep them from failing.
static RUNNERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(^|/)(Makefile|makefile|GNUmakefile|justfile|package\.json|tox\.ini|noxfile\.py|\.gitlab-ci\.yml|Jenkinsfile)$|(^|/)\.(github|circleci|ci)/|\.(mk|sh)$",
    )
});
static HARMLESS_FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\|\|\s*(true|:|exit 0)\b|continue-on-error:\s*true|allow_failure:\s*true|--passWithNoTests|\|\|\s*:\s*$",
    )
});

/// Names by which test files are known in most projects.
static TEST_FILES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(^|/)(tests?|__tests__|specs?|testing|e2e)/|(^|/)test_[^/]*\.py$|(^|/)conftest\.py$|_(test|spec)\.[^/.]+$|\.(test|spec)\.[^/]+$|[a-z0-9](Tests?|Spec|IT)\.(java|kt|scala|groovy|cs|php|swift)$",
    )
});

static ASSERTIONS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(debug_)?assert\w*!?[\s(.]|\bexpect\w*\(|\.should\b|\b[tb]\.(error|errorf|fatal|fatalf|fail|failnow)\(|\b(require|assert)\.\w+\(|\bprop_assert",
    )
});
static TEST_CASES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*#\[([a-z_:]+::)?(test|rstest)\b|^\s*(async\s+)?def test\w*\(|^\s*(it|test)(\.each\b.*)?\s*\(|^func (Test|Fuzz|Benchmark)\w*\(|^\s*@(Test|ParameterizedTest)\b|^\s*\[(Test|Fact|Theory|TestMethod)\b|^\s*it\s+['\x22]|^\s*TEST(_[FP])?\(",
    )
});

/// Made when a file comes up that its sign counts in: most projects have few languages.
static PATTERNS: [OnceLock<Regex>; SIGNS.len()] = [const { OnceLock::new() }; SIGNS.len()];

/// The signs, and what they are known by.
fn known_signs() -> impl Iterator<Item = (&'static Sign, impl Fn() -> &'static Regex)> {
    SIGNS.iter().zip(&PATTERNS).map(|(sign, made)| {
        let ready = move || made.get_or_init(|| pattern(sign.pattern));
        (sign, ready)
    })
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns stand in this file and are tested")
}

pub(super) fn inspect(found: &mut Inspection, policy: &Policy, changes: &[FileChange]) {
    let is_test = |path: &str| policy.is_test(path) || TEST_FILES.is_match(path);
    for change in changes {
        let path = &change.path;
        if RUNNERS.is_match(path) {
            for line in change
                .lines
                .added
                .iter()
                .filter(|line| HARMLESS_FAILURE.is_match(beginning(&line.text)))
            {
                found.remark(
                    "tests.harmless",
                    format!(
                        "`{path}` line {} lets a command fail without consequence.",
                        line.number
                    ),
                );
            }
        }
        signs(found, path, &change.lines.added, is_test(path));
        match (&change.before, &change.after) {
            (Some(before), None) if is_test(path) => {
                let moved = changes.iter().find(|other| {
                    other.before.is_none()
                        && other.after.as_ref().is_some_and(|after| after.object == before.object)
                });
                match moved {
                    Some(other) if is_test(&other.path) => {}
                    Some(other) => found.remark(
                        "tests.moved",
                        format!("`{path}` became `{}`, which is not a test file.", other.path),
                    ),
                    None => found.remark("tests.deleted", format!("`{path}` was deleted.")),
                }
            }
            (Some(_), Some(_)) => fewer(found, change, is_test(path)),
            (Some(_) | None, None) | (None, Some(_)) => {}
        }
    }
}

/// Tests may stand in any file of a language; what is not particular to one
/// counts in test files only.
fn signs(found: &mut Inspection, path: &str, added: &[Line], is_test: bool) {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    for (sign, pattern) in known_signs() {
        let counts = if sign.endings.is_empty() { is_test } else { sign.endings.contains(&ending) };
        if !counts {
            continue;
        }
        let pattern = pattern();
        for line in added.iter().filter(|line| pattern.is_match(beginning(&line.text))) {
            let (meaning, number) = (sign.meaning, line.number);
            found.remark(sign.rule, format!("`{path}` line {number} {meaning}."));
        }
    }
}

/// Whether a file has lost tests, or a test file assertions.
fn fewer(found: &mut Inspection, change: &FileChange, is_test: bool) {
    let path = &change.path;
    let lost = |pattern: &Regex| {
        let count = |lines: &[Line]| {
            lines.iter().map(|line| pattern.find_iter(beginning(&line.text)).count()).sum::<usize>()
        };
        count(&change.lines.removed).saturating_sub(count(&change.lines.added))
    };
    let cases = lost(&TEST_CASES);
    if cases > 0 {
        found.remark(
            "tests.fewer",
            format!("`{path}` has {cases} fewer {}.", plural(cases, "test")),
        );
    }
    let assertions = lost(&ASSERTIONS);
    if is_test && assertions > 0 {
        let noun = plural(assertions, "assertion");
        found.remark("tests.weaker", format!("`{path}` has {assertions} fewer {noun}."));
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_is_seen_in_its_examples() {
        for (sign, pattern) in known_signs() {
            assert!(!sign.examples.is_empty(), "{}", sign.meaning);
            for example in sign.examples {
                assert!(pattern().is_match(example), "`{example}` {}", sign.meaning);
            }
        }
    }

    #[test]
    fn ordinary_lines_are_no_signs() {
        for line in [
            "#[test]",
            "    let ignored = list.ignore();",
            "it('skips empty lines', () => {",
            "    assert result is True",
            "assert!(true_positive(&found));",
            "expect(trueish).toBe(true)",
            "assertTrue(found)",
            "assert_eq!(1, count);",
            "@Test",
            "def test_skip_list():",
            "split.only_first()",
            "exit('a')",
            "//go:build linux",
            "fitness(3)",
        ] {
            for (sign, pattern) in known_signs() {
                assert!(!pattern().is_match(line), "`{line}` {}", sign.meaning);
            }
        }
    }

    #[test]
    fn test_files_are_known_by_their_names() {
        for (path, expected) in [
            ("tests/it/main.rs", true),
            ("src/auth/token_test.go", true),
            ("web/app.spec.ts", true),
            ("web/__tests__/app.js", true),
            ("pkg/test_auth.py", true),
            ("src/main/java/AuthTest.java", true),
            ("src/latest/mod.rs", false),
            ("src/contest.py", false),
            ("src/testament.rs", false),
            ("src/auth.rs", false),
        ] {
            assert_eq!(TEST_FILES.is_match(path), expected, "{path}");
        }
    }
}
