//! Fences around texts of others: where one begins and ends, beyond doubt.
//!
//! Each prompt has a key of its own, drawn when the prompt is made, so that
//! nobody who wrote a text before that could know it. A text that holds the key
//! all the same gets another one. What stands between the fences is never
//! changed here; see [`text`](super::text) for what is done to it before.

use std::fmt;

/// The randomness of one prompt's fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    seed: [u8; 16],
}

impl Fence {
    /// A fence from the system's randomness.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 16];
        getrandom::fill(&mut seed)?;
        Ok(Fence { seed })
    }

    /// A fence from randomness that is an input. The same bytes give the same
    /// prompt.
    pub fn from_bytes(seed: [u8; 16]) -> Self {
        Fence { seed }
    }

    /// The key to try first, or after so many that were found in a text.
    pub(super) fn key(&self, refused: u32) -> Key {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed).update(&refused.to_le_bytes());
        // 64 bits cannot be guessed, and each fence line costs tokens.
        Key(hasher.finalize().to_hex()[..16].to_owned())
    }
}

/// What tells a prompt's own fences from anything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    pub fn occurs_in(&self, text: &str) -> bool {
        text.contains(&self.0)
    }

    /// The text between two lines that only this key can make. The name stands
    /// in the first one and is not a text of others.
    pub fn around(&self, name: &str, text: &str) -> String {
        format!("<<<data-{self} {name}\n{text}\ndata-{self}>>>")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_seed_and_by_try() {
        let (one, other) = (Fence::from_bytes([1; 16]), Fence::from_bytes([2; 16]));
        assert_eq!(one.key(0), one.key(0));
        assert_ne!(one.key(0), one.key(1));
        assert_ne!(one.key(0), other.key(0));
        assert_ne!(Fence::draw().unwrap(), Fence::draw().unwrap());
    }
}
