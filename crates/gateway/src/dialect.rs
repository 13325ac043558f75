//! The languages in which agents talk to models.

use std::fmt;

/// Which API a request speaks, told by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI chat completions, which most local servers speak too.
    Chat,
}

impl Dialect {
    pub const ALL: [Dialect; 3] = [Dialect::Messages, Dialect::Responses, Dialect::Chat];

    /// The dialect of a request path; `None` for paths that no agent needs.
    pub fn of_path(path: &str) -> Option<Dialect> {
        let path = path.split('?').next().unwrap_or(path);
        Dialect::ALL.into_iter().find(|dialect| dialect.path() == path)
    }

    pub fn path(self) -> &'static str {
        match self {
            Dialect::Messages => "/v1/messages",
            Dialect::Responses => "/v1/responses",
            Dialect::Chat => "/v1/chat/completions",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Dialect::Messages => "messages",
            Dialect::Responses => "responses",
            Dialect::Chat => "chat",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_dialect_and_near_misses_tell_nothing() {
        assert_eq!(Dialect::of_path("/v1/messages?beta=true"), Some(Dialect::Messages));
        assert_eq!(Dialect::of_path("/v1/responses"), Some(Dialect::Responses));
        assert_eq!(Dialect::of_path("/v1/chat/completions"), Some(Dialect::Chat));
        for other in ["/v1/messages/", "/v1/messages/batches", "/V1/messages", "//v1/messages", ""]
        {
            assert_eq!(Dialect::of_path(other), None, "{other}");
        }
    }
}
