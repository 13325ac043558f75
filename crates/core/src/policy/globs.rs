//! Patterns of file names that tools look for.

use globset::GlobBuilder;

use super::Policy;
use super::ground::Ground;
use super::paths::{User, is_strange};
use super::protected::is_git;
use super::verdict::{Judged, Rule, deny};
use crate::path_pattern::expand;

/// Names that an honest pattern is after: one that finds `..` or `.git`, and none of
/// these, is written so that nobody sees it.
const ORDINARY: &[&str] = &["a", "ab", "a.b", ".x", ".github", ".gitignore", "x.git"];

impl Policy {
    /// Judges a pattern of file names that is looked for below a directory.
    pub(super) fn judge_glob(
        &self,
        glob: &str,
        directory: &str,
        cwd: &str,
        ground: &dyn Ground,
    ) -> Judged {
        let wild = |c: char| "*?[{".contains(c);
        if let Some(c) = glob.chars().find(|c| *c != '\\' && is_strange(*c)) {
            return deny(
                Rule::PathStrange,
                format!("the pattern contains the character {}. Leave it out.", c.escape_unicode()),
            );
        }
        let climbs = glob.split(['/', '{', '}', ',']).any(|part| part == "..");
        if climbs || glob.starts_with('~') {
            return deny(
                Rule::PathOutside,
                format!("the pattern `{glob}` leaves its directory. Look in the workspace only."),
            );
        }
        let start = glob.find(wild).unwrap_or(glob.len());
        let fixed = &glob[..glob[..start].rfind('/').map_or(0, |slash| slash + 1)];
        // `{/etc,x}/*` has its root within the braces.
        if glob.contains("{/") || glob.contains(",/") {
            return deny(
                Rule::PathOutside,
                format!("the pattern `{glob}` has absolute parts. Use one relative pattern."),
            );
        }
        if !glob.starts_with('!') && is_disguised(glob) {
            return deny(
                Rule::PathProtected,
                format!("the pattern `{glob}` is after `.git` or `..`. Look for other files."),
            );
        }
        match fixed {
            "" => Ok(Rule::PathRead),
            fixed if fixed.starts_with('/') => self.judge_read(fixed, cwd, ground, User::Tool),
            fixed => {
                let below = format!("{}/{fixed}", directory.trim_end_matches('/'));
                self.judge_read(&below, cwd, ground, User::Tool)
            }
        }
    }
}

/// Whether one of the names in a pattern stands for `..` or `.git` and hardly for
/// anything else.
fn is_disguised(glob: &str) -> bool {
    let extended = ["@(", "+(", "?(", "!(", "*("].iter().any(|sign| glob.contains(sign));
    // What cannot be read is refused by whoever has to know what it finds.
    let readings = expand(glob).unwrap_or_default();
    extended || readings.iter().flat_map(|reading| reading.split('/')).any(is_disguised_name)
}

fn is_disguised_name(name: &str) -> bool {
    let Ok(matcher) = GlobBuilder::new(name).case_insensitive(true).build() else {
        return false;
    };
    let matcher = matcher.compile_matcher();
    let finds = is_git(name) || matcher.is_match("..") || matcher.is_match(".git");
    finds && !ORDINARY.iter().any(|ordinary| matcher.is_match(ordinary))
}
