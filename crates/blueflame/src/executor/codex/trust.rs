//! Hooks as codex wants them named before it runs them: it skips one that it was
//! not told to trust, without a word.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::hook::PROGRAMS_PATIENCE;

/// A hook that runs this command.
pub fn handler(command: &str) -> Value {
    json!({"command": command, "timeout": PROGRAMS_PATIENCE.as_secs(), "type": "command"})
}

/// What codex calls a hook that may be run (measured with 0.166.0): the hash of
/// its definition as compact JSON with sorted keys.
pub fn hash(event: &str, command: &str) -> String {
    let timeout = PROGRAMS_PATIENCE.as_secs();
    let handler =
        json!({"async": false, "command": command, "timeout": timeout, "type": "command"});
    let definition = json!({"event_name": event, "hooks": [handler]});
    let hash = digest(&SHA256, definition.to_string().as_bytes());
    hash.as_ref().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_codex_has() {
        // The contract tests show that 0.166.0 accepts it; this, that it stays.
        assert_eq!(
            hash("pre_tool_use", "true"),
            "sha256:8091a255399822ce7f06a458d89f7fb7fb1ef60a4c32a9f47202cf1b5c5a7b85"
        );
    }
}
