//! `make`: no other makefiles, and no variables that choose what is run.
//!
//! A variable on make's command line wins over the makefile, and goes into the
//! environment of everything that make runs.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::filters::is_option;
use super::programs::refuse;
use super::simple::Call;
use super::{Walk, Walked};

const REFUSED: &[&str] = &[
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

/// Variables by which rules are told what to work on.
const FOR_PLACES: &[&str] = &[
    "DIR",
    "FILE",
    "FILES",
    "PACKAGE",
    "PACKAGES",
    "PKG",
    "PKGS",
    "T",
    "TARGET",
    "TEST",
    "TESTS",
    "TEST_FILE",
    "TEST_PATH",
];

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let mut words = call.arguments.iter();
    let mut elsewhere = false;
    while let Some(word) = words.next() {
        if is_count(word) {
            continue;
        }
        let text = word.literal()?;
        if let Some(directory) = directory(text) {
            // The same as `( cd DIR && make )`; what a second one starts from is not
            // worth following.
            let named = match directory {
                "" => words.next().cloned(),
                directory => Some(Argument { text: directory.to_owned(), ..word.clone() }),
            };
            if std::mem::replace(&mut elsewhere, true) || named.is_none() {
                return refuse(call, text);
            }
            walk.change_directory(named.as_slice(), call.from)?;
            continue;
        }
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
                return deny(
                    Rule::CommandFlag,
                    format!(
                        "`make {text}` sets a variable that could choose what is run. Set only \
                         such as V=1, TEST=name and PKG=./src/x, or leave it out."
                    ),
                );
            }
            value.split(' ').try_for_each(|piece| walk.pieces(piece, call))?;
            continue;
        } else if text.contains(['$', '`', '(']) {
            return refuse(call, text);
        }
        walk.plain(word, call)?;
    }
    Ok(())
}

/// What stands behind `-C`; nothing if that is the next word.
fn directory(text: &str) -> Option<&str> {
    if text == "--directory" {
        return Some("");
    }
    text.strip_prefix("--directory=").or_else(|| text.strip_prefix("-C"))
}

/// `-j$(nproc)`: how many processors there are is a number.
fn is_count(word: &Argument) -> bool {
    ["-j$(nproc)", "$(nproc)"].contains(&word.text.as_str()) && !word.glob
}

/// Whether a variable changes nothing but what make's own rules say. Operators
/// other than `=` are not used: `!=` runs its value.
fn is_harmless(name: &str, value: &str) -> bool {
    let plain_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,-".contains(c);
    let upper = name.to_ascii_uppercase();
    if FOR_TESTS.contains(&upper.as_str()) {
        return !value.contains("exec") && value.chars().all(|c| plain(c) || " /".contains(c));
    }
    if FOR_PLACES.contains(&upper.as_str()) {
        return !value.starts_with('-') && value.chars().all(|c| plain(c) || " /".contains(c));
    }
    match upper.as_str() {
        "CC" | "HOSTCC" => return ["cc", "gcc", "clang"].contains(&value),
        "CXX" => return ["c++", "g++", "clang++"].contains(&value),
        "CFLAGS" | "CXXFLAGS" | "CPPFLAGS" => return value.split(' ').all(is_plain_flag),
        _ => {}
    }
    let chooses = CHOOSING.contains(&upper.as_str())
        || CHOOSING_BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning))
        || upper.contains("MAKE")
        || upper.ends_with("FLAGS")
        || upper.ends_with("_PROXY");
    plain_name && !chooses && !value.starts_with('-') && value.chars().all(plain)
}

/// Options for compilers that only change what is built. Others load plugins, run
/// other programs or write files.
fn is_plain_flag(flag: &str) -> bool {
    let word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-+=".contains(c));
    let known = ["-O", "-g", "-W", "-D", "-std=", "-fsanitize=", "-pedantic", "-m32", "-m64"];
    known.iter().any(|known| flag.starts_with(known)) && word(flag)
}
