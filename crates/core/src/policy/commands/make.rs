//! `make`: no other makefiles, and no variables that choose what is run.
//!
//! A variable on make's command line wins over the makefile, and goes into the
//! environment of everything that make runs.

use super::argument::Argument;
use super::filters::is_option;
use super::programs::refuse;
use super::simple::Call;
use super::{Walk, Walked};

const REFUSED: &[&str] = &[
    "--directory",
    "--file",
    "--makefile",
    "--eval",
    "--include-dir",
    "--environment-overrides",
    "--assume-new",
    "--what-if",
    "--new-file",
    "--old-file",
    "--assume-old",
    "--touch",
];

/// Options of one letter.
const LETTERS: &str = "bBdhijklmnOpqrRsSvw.";

/// Variables that choose a program, or what one loads.
const CHOOSING: &[&str] = &[
    "PATH",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "IFS",
    "PS4",
    "VPATH",
    "CDPATH",
    "GLOBIGNORE",
    "HOME",
    "TMPDIR",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "CC",
    "CXX",
    "CPP",
    "LD",
    "AR",
    "AS",
    "FC",
    "NM",
    "RANLIB",
    "STRIP",
    "OBJCOPY",
    "LEX",
    "YACC",
    "INSTALL",
    "RM",
    "SUDO",
    "CMD",
    "COMMAND",
    "EXEC",
    "RUNNER",
    "WRAPPER",
    "PREFIX",
    "DESTDIR",
    "NODE",
    "NPM",
    "NPX",
    "YARN",
    "PNPM",
    "PYTHON",
    "PIP",
    "PERL",
    "RUBY",
    "JAVA",
    "RUSTC",
    "DOCKER",
    "CLASSPATH",
];

/// Beginnings of the names of such variables.
const CHOOSING_BEGINNINGS: &[&str] = &[
    "LD_", "DYLD_", "GIT_", "GO", "CARGO", "RUST", "NODE_", "NPM_", "PYTHON", "PERL5", "RUBY",
    "JAVA_", "BASH_", "GCC_", "CCACHE", "SSH_", "XDG_",
];

/// Variables by which tests are given their options.
const FOR_TESTS: &[&str] =
    &["ARGS", "TESTARGS", "TEST_ARGS", "TESTFLAGS", "TEST_FLAGS", "TESTOPTS", "TEST_OPTS", "RUN"];

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    for word in call.arguments {
        if is_count(word) {
            continue;
        }
        let text = word.literal()?;
        if text.starts_with("--") {
            if REFUSED.iter().any(|option| is_option(text, option)) {
                return refuse(call, text);
            }
        } else if let Some(bundle) = text.strip_prefix('-') {
            if !bundle.chars().all(|c| LETTERS.contains(c) || c.is_ascii_digit()) {
                return refuse(call, text);
            }
        } else if let Some((name, value)) = text.split_once('=') {
            if !is_harmless(name, value) {
                return refuse(call, text);
            }
        } else if text.contains(['$', '`', '(']) {
            return refuse(call, text);
        }
        walk.plain(word, call)?;
    }
    Ok(())
}

/// `-j$(nproc)`: how many processors there are is a number.
fn is_count(word: &Argument) -> bool {
    word.text == "-j$(nproc)" && !word.glob
}

/// Whether a variable changes nothing but what make's own rules say. Operators
/// other than `=` are not used: `!=` runs its value.
fn is_harmless(name: &str, value: &str) -> bool {
    let plain_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,-".contains(c);
    let upper = name.to_ascii_uppercase();
    if FOR_TESTS.contains(&upper.as_str()) {
        return !value.contains("exec") && value.chars().all(|c| plain(c) || c == ' ');
    }
    let chooses = CHOOSING.contains(&upper.as_str())
        || CHOOSING_BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning))
        || upper.contains("MAKE")
        || upper.ends_with("FLAGS")
        || upper.ends_with("_PROXY");
    plain_name && !chooses && !value.starts_with('-') && value.chars().all(plain)
}
