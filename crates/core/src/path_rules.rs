//! Which files agents may change.
//!
//! A file may be changed when an allowed pattern matches it and no blocked one
//! does. Blocking reaches wide, so that a rule against `*.key` also holds in
//! directories nobody thought of: a blocked pattern without a slash counts at
//! every depth, and whatever lies below a blocked path is blocked.
//!
//! A lock names a file or a directory that may not exist yet. It is *inside*
//! when everything it could cover may be changed, *partly* inside when only
//! some of it may, and *outside* when nothing may. A lock written with a slash
//! at the end is a directory; any other may be either, and gets the benefit of
//! the doubt.

use crate::lock_path::LockPath;
use crate::path_pattern::{PathPattern, Reach};

#[derive(Clone, Debug, Default)]
pub struct PathRules {
    pub allowed: Vec<PathPattern>,
    pub blocked: Vec<PathPattern>,
}

/// What the rules say about changing one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathVerdict<'r> {
    Allowed {
        by: &'r str,
    },
    Blocked {
        by: &'r str,
    },
    /// No allowed pattern matches.
    Unlisted,
}

/// How a lock lies to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockFit<'r> {
    Inside,
    /// Only some of what it covers may be changed.
    Partly,
    /// Nothing that it covers may be changed.
    Outside,
    /// All that it covers is blocked by this pattern.
    Blocked {
        by: &'r str,
    },
}

/// What a lock was written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockForm {
    /// With a slash at the end.
    Directory,
    /// A file, or a directory without the slash.
    Either,
}

impl LockForm {
    pub fn of(written: &str) -> Self {
        if written.ends_with('/') { LockForm::Directory } else { LockForm::Either }
    }
}

impl PathRules {
    /// Judges a path in normal form, relative to the repository.
    pub fn judge(&self, path: &str) -> PathVerdict<'_> {
        if let Some(pattern) = self.blocked.iter().find(|pattern| blocks(pattern, path)) {
            return PathVerdict::Blocked { by: pattern.as_str() };
        }
        match self.allowed.iter().find(|pattern| pattern.matches(path)) {
            Some(pattern) => PathVerdict::Allowed { by: pattern.as_str() },
            None => PathVerdict::Unlisted,
        }
    }

    pub fn fit(&self, lock: &LockPath, form: LockForm) -> LockFit<'_> {
        let all_blocked = |pattern: &&PathPattern| {
            blocks(pattern, lock.as_str()) || pattern.reach(lock) == Reach::Everything
        };
        if let Some(pattern) = self.blocked.iter().find(all_blocked) {
            return LockFit::Blocked { by: pattern.as_str() };
        }
        let fits = self.allowed.iter().map(|pattern| match (pattern.reach(lock), form) {
            (Reach::Everything, _) | (Reach::Itself, LockForm::Either) => LockFit::Inside,
            (Reach::Part, _) => LockFit::Partly,
            (Reach::Nothing, _) | (Reach::Itself, LockForm::Directory) => LockFit::Outside,
        });
        fits.min_by_key(|fit| match fit {
            LockFit::Inside => 0,
            LockFit::Partly => 1,
            LockFit::Outside | LockFit::Blocked { .. } => 2,
        })
        .unwrap_or(LockFit::Outside)
    }
}

/// Whether a blocked pattern covers a path: by itself, by one of its names, or
/// by a directory above it.
pub(crate) fn blocks(pattern: &PathPattern, path: &str) -> bool {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    pattern.is_name() && path.split('/').any(|name| pattern.matches(name))
        || ends.into_iter().any(|end| pattern.matches(&path[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allowed: &[&str], blocked: &[&str]) -> PathRules {
        let patterns =
            |list: &[&str]| list.iter().map(|text| PathPattern::new(text).unwrap()).collect();
        PathRules { allowed: patterns(allowed), blocked: patterns(blocked) }
    }

    #[test]
    fn blocked_paths_are_blocked_at_every_depth_and_below() {
        let rules = rules(&["**"], &[".env*", "*.key", ".claude/**", "go.mod", "docs/private"]);
        for (path, allowed) in [
            (".env", false),
            ("api/.env.local", false),
            ("deep/er/server.key", false),
            ("vendor/x.key/readme", false),
            (".claude/settings.json", false),
            ("sub/.claude/settings.json", true),
            ("tools/go.mod", false),
            ("docs/private/a.md", false),
            ("docs/public/a.md", true),
            ("src/key.rs", true),
        ] {
            let verdict = rules.judge(path);
            assert_eq!(matches!(verdict, PathVerdict::Allowed { .. }), allowed, "{path}");
        }
    }

    #[test]
    fn an_allowed_star_stays_in_its_directory() {
        let rules = rules(&["src/*.rs"], &[]);
        assert_eq!(rules.judge("src/a.rs"), PathVerdict::Allowed { by: "src/*.rs" });
        assert_eq!(rules.judge("src/a/b.rs"), PathVerdict::Unlisted);
    }

    #[test]
    fn a_lock_fits_when_what_it_covers_may_be_changed() {
        let blocked = |by| LockFit::Blocked { by };
        for (allowed, forbidden, lock, fit) in [
            ("src/**", "x", "src", LockFit::Inside),
            ("src/**", "x", "src/", LockFit::Inside),
            ("src/**", "x", "src/auth/", LockFit::Inside),
            ("src/**", "x", "src/a.rs", LockFit::Inside),
            ("src/**", "x", "docs", LockFit::Outside),
            ("src/**", "x", "src-old/", LockFit::Outside),
            ("src/*.rs", "x", "src/a.rs", LockFit::Inside),
            ("src/*.rs", "x", "src/a.rs/", LockFit::Outside),
            ("src/*.rs", "x", "src/auth/", LockFit::Outside),
            ("src/*.rs", "x", "src", LockFit::Partly),
            ("src/*", "x", "src/auth", LockFit::Inside),
            ("src/*", "x", "src/auth/", LockFit::Outside),
            ("src/auth/**", "x", "src", LockFit::Partly),
            ("src/**/*.rs", "x", "src/auth/", LockFit::Partly),
            ("README.md", "x", "README.md", LockFit::Inside),
            ("**", "src/gen/**", "src/gen", blocked("src/gen/**")),
            ("**", "src/gen/**", "src/gen/a.rs", blocked("src/gen/**")),
            ("**", "src/gen/**", "src", LockFit::Inside),
            ("**", "*.key", "certs/server.key", blocked("*.key")),
            ("**", "src/gen", "src/gen/deep/", blocked("src/gen")),
        ] {
            let rules = rules(&[allowed], &[forbidden]);
            let path = LockPath::new(lock).unwrap();
            assert_eq!(
                rules.fit(&path, LockForm::of(lock)),
                fit,
                "allowed {allowed}, blocked {forbidden}, lock {lock}"
            );
        }
        let none = PathRules::default();
        assert_eq!(none.fit(&LockPath::new("src").unwrap(), LockForm::Either), LockFit::Outside);
    }
}
