//! Secrets: the provider's key, and the token by which an agent is known.
//!
//! Neither can be printed: `Debug` shows that there is one, and nothing else
//! gives the text away but the functions that need it.

use std::fmt;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::dialect::Dialect;

pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The key that the provider knows. Agents never see it.
#[derive(Clone)]
pub struct Credential(String);

/// A key that cannot stand in a header, such as one with a line break.
#[derive(Debug, thiserror::Error)]
#[error("the credential is empty or contains characters that no key has")]
pub struct BadCredential;

impl Credential {
    pub fn new(text: impl Into<String>) -> Result<Self, BadCredential> {
        let text = text.into();
        let fine = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fine { Ok(Credential(text)) } else { Err(BadCredential) }
    }

    /// Puts the key where the dialect's provider looks for it.
    pub(crate) fn inject(&self, dialect: Dialect, headers: &mut HeaderMap) {
        let (name, text) = match dialect {
            Dialect::Messages => (X_API_KEY, self.0.clone()),
            Dialect::Responses | Dialect::Chat => (AUTHORIZATION, format!("Bearer {}", self.0)),
        };
        if let Ok(mut value) = HeaderValue::from_str(&text) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }

    /// The same text without the key, if it should be in there.
    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(&self.0, "[credential]")
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// What an agent must show. It opens this gateway and nothing else.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one that nobody can guess.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Token(format!("bf-{}", blake3::hash(&bytes).to_hex())))
    }

    /// The text, for the agent's environment.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether a request carries this token, as `x-api-key` or as a bearer.
    pub(crate) fn opens(&self, headers: &HeaderMap) -> bool {
        let bearer = |value: &HeaderValue| -> Option<Vec<u8>> {
            let (scheme, rest) = value.as_bytes().split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| rest.to_vec())
        };
        let keys = headers.get_all(X_API_KEY).iter().map(|value| value.as_bytes().to_vec());
        let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(bearer);
        // Hashes are compared in constant time, and say nothing of the length.
        let wanted = blake3::hash(self.0.as_bytes());
        keys.chain(bearers).any(|shown| blake3::hash(&shown) == wanted)
    }

    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(&self.0, "[token]")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_in_both_headers_and_nothing_else_does() {
        let token = Token::generate().unwrap();
        let opens = |name: &'static str, value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(&value).unwrap());
            token.opens(&headers)
        };
        assert!(opens("x-api-key", token.reveal().to_owned()));
        assert!(opens("authorization", format!("Bearer {}", token.reveal())));
        assert!(opens("authorization", format!("bearer {}", token.reveal())));
        for wrong in ["", "Bearer", "Bearer ", "bf-0", &token.reveal()[1..]] {
            assert!(!opens("x-api-key", wrong.to_owned()), "{wrong}");
            assert!(!opens("authorization", wrong.to_owned()), "{wrong}");
        }
        assert!(!opens("authorization", token.reveal().to_owned()), "no scheme");
        assert!(!token.opens(&HeaderMap::new()));
        assert_ne!(token.reveal(), Token::generate().unwrap().reveal());
    }

    #[test]
    fn secrets_do_not_print() {
        let credential = Credential::new("sk-secret-marker").unwrap();
        let token = Token::generate().unwrap();
        assert_eq!(format!("{credential:?} {token:?}"), "Credential(..) Token(..)");
        let mut headers = HeaderMap::new();
        for dialect in Dialect::ALL {
            credential.inject(dialect, &mut headers);
        }
        assert!(!format!("{headers:?}").contains("marker"));
        for bad in ["", "two words", "line\nbreak", "ü"] {
            assert!(Credential::new(bad).is_err(), "{bad:?}");
        }
    }
}
