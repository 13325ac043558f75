//! Putting a prompt together: texts of others are fenced, the templates are
//! filled, and every part is weighed.

use minijinja::Value;

use super::fence::{Fence, Key};
use super::part::Part;
use super::sizes::PromptSizes;
use super::text::{cut, visible};
use super::{Prompt, PromptError, templates};
use crate::narrate::plain;

/// Where the texts of others are fenced, all with the same key.
#[derive(Debug)]
pub(super) struct Sheet {
    key: Key,
    key_occurs: bool,
    sizes: Vec<(&'static str, usize)>,
}

impl Sheet {
    /// A text of others between its fences.
    pub fn data(&mut self, part: Part, text: &str) -> Value {
        self.named(part, part.name(), text)
    }

    /// The same with a name of our own making.
    pub fn named(&mut self, part: Part, name: &str, text: &str) -> Value {
        let shown = visible(text);
        let kept = cut(&shown, part.limit());
        self.key_occurs |= self.key.occurs_in(&kept);
        let fenced = self.key.around(name, &kept);
        self.sizes.push((part.name(), fenced.len()));
        fenced.into()
    }

    /// The same for a text that may be missing; a blank one counts as missing.
    pub fn maybe(&mut self, part: Part, text: Option<&str>) -> Option<Value> {
        let text = text.filter(|text| !text.trim().is_empty())?;
        Some(self.data(part, text))
    }

    /// One entry a line; nothing if there is none.
    pub fn list<T: ToString>(
        &mut self,
        part: Part,
        entries: impl IntoIterator<Item = T>,
    ) -> Option<Value> {
        // An entry is one line, whatever is in it.
        let line = |entry: T| plain(&entry.to_string()).into_owned();
        let lines: Vec<String> = entries.into_iter().map(line).collect();
        (!lines.is_empty()).then(|| self.data(part, &lines.join("\n")))
    }
}

/// What is said to which role, without any text of others.
#[derive(Debug)]
pub(super) struct Frame {
    /// Templates of the standing rules and of the job.
    pub rules: &'static str,
    pub job: &'static str,
    /// The line by which a request is known: `role=worker task=task-001`.
    pub marker: String,
    /// What the rules say; the same for all jobs of a session.
    pub standing: Value,
}

impl Frame {
    /// Makes the prompt. `fill` is called again with another key in case a text
    /// of others holds the first one.
    pub fn compose(
        self,
        fence: &Fence,
        fill: impl Fn(&mut Sheet) -> Value,
    ) -> Result<Prompt, PromptError> {
        let system = templates::render(self.rules, self.standing)?;
        let mut refused = 0;
        let (sheet, values) = loop {
            let key = fence.key(refused);
            let mut sheet = Sheet { key, key_occurs: false, sizes: Vec::new() };
            let values = fill(&mut sheet);
            if !sheet.key_occurs {
                break (sheet, values);
            }
            refused += 1;
        };
        let job = templates::render(self.job, values)?;
        let user = format!(
            "{}{}\ndata key: {}\n\n{job}\n",
            blueflame_gateway::script::MARKER,
            self.marker,
            sheet.key
        );
        let fenced: usize = sheet.sizes.iter().map(|(_, bytes)| bytes).sum();
        let own = user.len().saturating_sub(fenced);
        let parts = [("rules", system.len()), ("job", own)].into_iter().chain(sheet.sizes);
        let sizes = PromptSizes::of(parts);
        Ok(Prompt { system, user, sizes })
    }
}

/// Words of the configuration in a row, each as code; nothing if there is none.
pub(super) fn words<T: ToString>(texts: impl IntoIterator<Item = T>) -> Option<String> {
    let code = |text: T| format!("`{}`", plain(&text.to_string()));
    let row: Vec<String> = texts.into_iter().map(code).collect();
    (!row.is_empty()).then(|| row.join(", "))
}
