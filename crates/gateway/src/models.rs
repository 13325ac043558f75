//! The models that an agent may ask for.
//!
//! The one that was ordered for it decides what its work costs and, with some
//! providers, what is done beside answering: a few letters after the name of a
//! model make it search the web.

/// What a request's model is held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Models {
    /// Whatever the agent says.
    #[default]
    Any,
    /// The ordered one; for one of Anthropic's also others of its family, and
    /// the small one that claude uses beside any other.
    Ordered(String),
}

/// What is said to claude for a model that has a longer memory; the provider is
/// told the name without it.
const LONG: &str = "[1m]";

/// The families by which claude calls its models for short.
const FAMILIES: [&str; 4] = ["fable", "haiku", "opus", "sonnet"];
const SMALL: &str = "haiku";

impl Models {
    pub(crate) fn allow(&self, asked: &str) -> bool {
        let Models::Ordered(ordered) = self else { return true };
        let ordered = ordered.strip_suffix(LONG).unwrap_or(ordered);
        let asked = asked.strip_suffix(LONG).unwrap_or(asked);
        asked == ordered
            || match (family(ordered), family(asked)) {
                // A short name, or one that claude takes to mean a newer model.
                (Some(ordered), Some(asked)) => asked == ordered || asked == SMALL,
                _ => false,
            }
    }
}

/// `sonnet` for `sonnet` and `claude-sonnet-5`; nothing for names that say more
/// than a version.
fn family(model: &str) -> Option<&'static str> {
    let rest = model.strip_prefix("claude-").unwrap_or(model);
    let version = |rest: &str| {
        rest.is_empty()
            || rest.strip_prefix('-').is_some_and(|version| {
                version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
            })
    };
    FAMILIES.into_iter().find(|family| rest.strip_prefix(family).is_some_and(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_ordered_and_what_claude_makes_of_it() {
        for (ordered, asked, fine) in [
            ("sonnet", "claude-sonnet-5", true),
            ("claude-sonnet-5", "claude-sonnet-5", true),
            ("opus[1m]", "claude-opus-4-8", true),
            ("claude-opus-4-1", "claude-opus-4-8", true),
            ("sonnet", "claude-haiku-4-5-20251001", true),
            ("gpt-5.2-codex", "gpt-5.2-codex", true),
            ("anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5", true),
            ("sonnet", "claude-opus-4-8", false),
            ("haiku", "claude-sonnet-5", false),
            ("sonnet", "claude-sonnet-5:online", false),
            ("sonnet", "claude-sonnet-5-search-preview", false),
            ("claude-sonnet-5", "anthropic/claude-sonnet-5", false),
            ("gpt-5.2-codex", "gpt-5.2-codex:online", false),
            ("gpt-5.2-codex", "gpt-5.2-pro", false),
            ("gpt-5.2-codex", "claude-haiku-4-5", false),
            ("gpt-5.2-codex", "", false),
        ] {
            let models = Models::Ordered(ordered.to_owned());
            assert_eq!(models.allow(asked), fine, "{ordered}: {asked}");
        }
        assert!(Models::Any.allow("anything"));
    }
}
