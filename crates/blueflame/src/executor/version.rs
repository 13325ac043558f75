//! Versions of agent programs, and which of them were tested.

use std::fmt;

/// A version in three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The first thing in a text that looks like a version.
    pub fn find(text: &str) -> Option<Version> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(Version::exactly)
    }

    /// A text that is a version and nothing else.
    pub fn exactly(text: &str) -> Option<Version> {
        let mut parts = text.split('.').map(str::parse);
        let version = Version(parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The versions that the contract tests have run against, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tested {
    pub from: Version,
    pub to: Version,
}

impl Tested {
    pub fn covers(self, version: Version) -> bool {
        (self.from..=self.to).contains(&version)
    }

    /// What to tell the person about a program that calls itself `said`;
    /// nothing if it was tested.
    pub fn warning(self, program: &str, said: &str) -> Option<String> {
        match Version::find(said) {
            Some(version) if self.covers(version) => None,
            Some(version) => Some(format!(
                "{program} {version} was never tested with Blue Flame, {self} was: it may \
                 behave differently"
            )),
            None => {
                let said = said.trim();
                Some(format!("{program} does not say its version (`{said}`); tested was {self}"))
            }
        }
    }
}

impl fmt::Display for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            write!(f, "{}", self.from)
        } else {
            write!(f, "{} to {}", self.from, self.to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        for (text, version) in [
            ("2.1.197 (Claude Code)\n", Some(Version(2, 1, 197))),
            ("codex-cli 0.166.0", Some(Version(0, 166, 0))),
            ("v1.2.3-beta", Some(Version(1, 2, 3))),
            ("1.2", None),
            ("1.2.3.4", None),
            ("command not found", None),
            ("99999999999.1.1", None),
        ] {
            assert_eq!(Version::find(text), version, "{text}");
        }
    }

    #[test]
    fn an_untested_version_is_a_warning_with_the_range() {
        let tested = Tested { from: Version(2, 1, 197), to: Version(2, 1, 325) };
        assert_eq!(tested.warning("claude", "2.1.200 (Claude Code)"), None);
        let older = tested.warning("claude", "2.1.9").unwrap();
        assert!(older.contains("2.1.9 was never") && older.contains("2.1.197 to 2.1.325"));
        let silent = tested.warning("claude", "oops\n").unwrap();
        assert!(silent.contains("(`oops`)"), "{silent}");
    }
}
