//! What may be written as an answer in a decisions file, question by question.

use blueflame_core::yaml::one_of;

/// What may be written as the answer to one question.
pub(super) struct Choices {
    pub words: &'static [&'static str],
    /// Keys, each with an example of what stands behind it.
    pub forms: &'static [(&'static str, &'static str)],
}

pub(super) const PLAN: Choices = Choices {
    words: &["approve", "quit"],
    forms: &[("replan", "\"what to do differently\""), ("edit", "tasks.yaml")],
};
pub(super) const CHANGESET: Choices =
    Choices { words: &["approve", "skip"], forms: &[("reject", "\"what is wrong with it\"")] };
pub(super) const SESSION: Choices = Choices {
    words: &["continue", "replan", "stop"],
    forms: &[("replan", "\"what to do differently\"")],
};
pub(super) const VALIDATION_FAILED: Choices = Choices {
    words: &["requeue", "drop"],
    forms: &[
        ("requeue", "\"what to do differently\""),
        ("edit", "{description: \"...\", file_locks: [...]}"),
    ],
};
pub(super) const VALIDATOR_FAILED: Choices =
    Choices { words: &["manual-pass", "skip", "retry"], forms: &[] };
pub(super) const BUDGET: Choices =
    Choices { words: &["stop"], forms: &[("raise_usd", "5.0"), ("raise_tokens", "100000")] };

impl Choices {
    /// Everything that could be written, for a hint.
    pub fn shown(&self) -> String {
        let forms = self.forms.iter().map(|(key, example)| format!("{{{key}: {example}}}"));
        let all: Vec<String> = self.words.iter().map(ToString::to_string).chain(forms).collect();
        one_of(all.iter().map(String::as_str))
    }

    /// How a key is written with what it needs, if it is one.
    pub fn example(&self, key: &str) -> Option<String> {
        let (key, example) = self.forms.iter().find(|(known, _)| *known == key)?;
        Some(format!("write `{{{key}: {example}}}`"))
    }
}
