//! Commands of the shell itself that change nothing but how a line ends: `set -e`,
//! `exit`, asking where a program is; and programs that are asked for their
//! version.

use super::argument::Argument;

/// Programs that do nothing but say their version when they are asked.
const TOOLS: &[&str] = &[
    "git", "go", "node", "npm", "pnpm", "yarn", "npx", "bun", "deno", "tsc", "python", "python3",
    "pip", "pip3", "pytest", "ruff", "mypy", "uv", "cargo", "rustc", "rustfmt", "gcc", "g++", "cc",
    "c++", "clang", "clang++", "make", "cmake", "ctest", "java", "javac", "mvn", "gradle", "ruby",
    "php", "dotnet", "swift", "bash",
];

/// Letters and names of what `set` may switch on: the line ends earlier, or says
/// more.
const LETTERS: &str = "eux";
const NAMES: &[&str] = &["pipefail", "errexit", "nounset", "xtrace"];

/// Whether a command is one of these.
pub(super) fn are_good(program: &str, arguments: &[Argument]) -> bool {
    match (program, arguments) {
        ("set", [_, ..]) => switches(arguments),
        ("exit", []) => true,
        ("exit", [code]) => code.text == "$?" || is_number(code),
        ("command", [option, names @ ..]) => {
            (option.is("-v") || option.is("-V")) && names.iter().all(Argument::known)
        }
        (program, [asked]) if TOOLS.contains(&program) => {
            asked.is("--version") || asked.is("version") && program == "go" || short(program, asked)
        }
        _ => false,
    }
}

fn short(program: &str, asked: &Argument) -> bool {
    matches!(program, "node" | "npm") && asked.is("-v")
        || matches!(program, "python" | "python3" | "cargo" | "rustc") && asked.is("-V")
}

fn is_number(word: &Argument) -> bool {
    word.literal().is_ok_and(|text| text.chars().all(|c| c.is_ascii_digit()))
}

fn switches(arguments: &[Argument]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Ok(Some(letters)) = word.literal().map(|text| text.strip_prefix('-')) else {
            return false;
        };
        let plain = letters.strip_suffix('o').unwrap_or(letters);
        let named = plain.len() == letters.len()
            || words.next().is_some_and(|name| NAMES.iter().any(|known| name.is(known)));
        if letters.is_empty() || !named || !plain.chars().all(|c| LETTERS.contains(c)) {
            return false;
        }
    }
    true
}
