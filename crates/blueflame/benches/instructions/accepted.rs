//! The figures that were accepted last, in a file of the repository.

use std::collections::BTreeMap;
use std::fs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/accepted.json");

#[derive(Debug, Default)]
pub struct Accepted(BTreeMap<String, u64>);

impl Accepted {
    /// Without a file nothing was accepted yet.
    pub fn read() -> Accepted {
        let text = fs::read_to_string(FILE).unwrap_or_else(|_| "{}".to_owned());
        Accepted(serde_json::from_str(&text).unwrap())
    }

    pub fn write(&self) {
        fs::write(FILE, serde_json::to_string_pretty(&self.0).unwrap() + "\n").unwrap();
    }

    pub fn of(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// How much more it is now, in percent.
    #[expect(clippy::cast_precision_loss, reason = "a percentage needs few digits")]
    pub fn change(&self, name: &str, now: u64) -> Option<f64> {
        self.of(name).map(|before| (now as f64 / before as f64 - 1.0) * 100.0)
    }

    pub fn take(&mut self, name: &str, now: u64) {
        self.0.insert(name.to_owned(), now);
    }

    pub fn keep_only(&mut self, known: &[&str]) {
        self.0.retain(|name, _| known.contains(&name.as_str()));
    }
}
