//! When a reply is given, and what to say when none is.

use std::fmt::Write as _;

use super::sight::{Sight, shortened};
use super::{Rule, Script};

/// What a request must show. Whatever is not named may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    pub role: Option<String>,
    pub task: Option<String>,
    pub attempt: Option<u32>,
    pub turn: Option<u32>,
    pub model: Option<String>,
    /// Text in the last message of the user, or in the last tool results.
    pub contains: Option<String>,
}

impl When {
    /// What the request shows otherwise, in words; nothing if it matches.
    fn differences(&self, sight: &Sight) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |name: &str, wanted: Option<String>, shown: Option<String>| {
            if let Some(wanted) = wanted
                && shown.as_ref() != Some(&wanted)
            {
                let shown = shown.map_or("not shown".to_owned(), |shown| format!("`{shown}`"));
                found.push(format!("{name} is {shown}, not `{wanted}`"));
            }
        };
        compare("role", self.role.clone(), sight.role.clone());
        compare("task", self.task.clone(), sight.task.clone());
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        compare("attempt", number(self.attempt), number(sight.attempt));
        compare("turn", number(self.turn), Some(sight.turn.to_string()));
        compare("model", self.model.clone(), Some(sight.model.clone()));
        if let Some(text) = &self.contains
            && !sight.last.contains(text.as_str())
        {
            found.push(format!("the last message does not contain {:?}", shortened(text, 80)));
        }
        found
    }

    /// Whether every request that matches `later` matches this one too.
    pub(super) fn covers(&self, later: &When) -> bool {
        fn wider<T: PartialEq>(this: Option<&T>, later: Option<&T>) -> bool {
            this.is_none() || this == later
        }
        let text = match (&self.contains, &later.contains) {
            (None, _) => true,
            (Some(short), Some(long)) => long.contains(short.as_str()),
            (Some(_), None) => false,
        };
        text && wider(self.role.as_ref(), later.role.as_ref())
            && wider(self.task.as_ref(), later.task.as_ref())
            && wider(self.attempt.as_ref(), later.attempt.as_ref())
            && wider(self.turn.as_ref(), later.turn.as_ref())
            && wider(self.model.as_ref(), later.model.as_ref())
    }
}

/// How many replies are named when none fits.
const CLOSEST: usize = 3;

impl Script {
    /// The first reply that fits, with its number from 1; or what to tell
    /// whoever wrote the script.
    pub(super) fn choose(&self, sight: &Sight) -> Result<(usize, &Rule), String> {
        let fits = |rule: &&Rule| rule.when.differences(sight).is_empty();
        let mut numbered = self.rules.iter().enumerate().map(|(at, rule)| (at + 1, rule));
        numbered.find(|(_, rule)| fits(rule)).ok_or_else(|| self.explain(sight))
    }

    fn explain(&self, sight: &Sight) -> String {
        let mut text =
            format!("the script has no reply for this request\nthe request shows {sight}");
        let mut near: Vec<_> = self
            .rules
            .iter()
            .enumerate()
            .map(|(at, rule)| (rule.when.differences(sight), at + 1, rule.line))
            .collect();
        near.sort_by_key(|(differences, number, _)| (differences.len(), *number));
        for (differences, number, line) in near.iter().take(CLOSEST) {
            let _ = write!(text, "\nreply {number} (line {line}): {}", differences.join("; "));
        }
        text
    }
}
