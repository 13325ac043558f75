//! Names of new files.

use crate::config::NamingStyle;

use super::Policy;
use super::verdict::{Judged, Rule, deny};

impl Policy {
    /// Whether the name of a new file has the style that is asked for.
    pub(super) fn judge_name(&self, path: &str) -> Judged {
        let Some(naming) = &self.compiled.rules.naming else { return Ok(Rule::PathWrite) };
        if !self.compiled.naming.iter().any(|pattern| pattern.matches(path)) {
            return Ok(Rule::PathWrite);
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        if fits(name, naming.style) {
            return Ok(Rule::PathWrite);
        }
        let (style, example) = match naming.style {
            NamingStyle::SnakeCase => ("snake_case", "token_cache"),
            NamingStyle::CamelCase => ("camelCase", "tokenCache"),
            NamingStyle::PascalCase => ("PascalCase", "TokenCache"),
            NamingStyle::KebabCase => ("kebab-case", "token-cache"),
        };
        deny(
            Rule::NameStyle,
            format!("`{name}` is not named in {style}. Name new files like `{example}`."),
        )
    }
}

/// Every part in front of the last dot counts, so `token_cache.test.ts` does.
fn fits(name: &str, style: NamingStyle) -> bool {
    let stem = match name.strip_prefix('.') {
        Some(_) => return true,
        None => name.rsplit_once('.').map_or(name, |(stem, _)| stem),
    };
    stem.split('.').all(|part| part_fits(part, style))
}

fn part_fits(part: &str, style: NamingStyle) -> bool {
    let only = |extra: &str, upper: bool| {
        part.chars().all(|c| {
            c.is_lowercase() || c.is_numeric() || extra.contains(c) || upper && c.is_uppercase()
        })
    };
    let first = part.chars().next();
    match style {
        NamingStyle::SnakeCase => only("_", false),
        NamingStyle::KebabCase => only("-", false) && first != Some('-'),
        NamingStyle::CamelCase => only("", true) && first.is_some_and(|c| !c.is_uppercase()),
        NamingStyle::PascalCase => only("", true) && first.is_some_and(|c| !c.is_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_style() {
        for (name, style, expected) in [
            ("token_cache.go", NamingStyle::SnakeCase, true),
            ("token_cache_test.go", NamingStyle::SnakeCase, true),
            ("__init__.py", NamingStyle::SnakeCase, true),
            ("tokenCache.go", NamingStyle::SnakeCase, false),
            ("token-cache.go", NamingStyle::SnakeCase, false),
            ("token-cache.test.ts", NamingStyle::KebabCase, true),
            ("token_cache.ts", NamingStyle::KebabCase, false),
            ("tokenCache.ts", NamingStyle::CamelCase, true),
            ("TokenCache.ts", NamingStyle::CamelCase, false),
            ("TokenCache.ts", NamingStyle::PascalCase, true),
            ("tokenCache.ts", NamingStyle::PascalCase, false),
            (".hidden-File", NamingStyle::SnakeCase, true),
        ] {
            assert_eq!(fits(name, style), expected, "{name} as {style:?}");
        }
    }
}
