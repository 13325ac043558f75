//! `SKILL.md`: what a skill says of itself, read by the rules of the Agent Skills
//! specification.
//!
//! Agents get the file with its name and its description alone before the text.
//! What else may stand there has some programs run commands, allow tools or start
//! agents.

use super::Conduct;
use crate::ids::SkillName;
use crate::yaml::{Document, Kind, Limits, Node};

/// The line before and after what a skill says of itself.
const FENCE: &str = "---";

const LIMITS: Limits = Limits { bytes: 64 << 10, depth: 16, nodes: 2_000 };

/// Characters that a description may have.
const LONGEST_DESCRIPTION: usize = 1024;

/// A `SKILL.md` that keeps to the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile<'t> {
    pub name: SkillName,
    /// On one line.
    pub description: String,
    /// Why no agent gets it, if so.
    pub conduct: Option<Conduct>,
    body: &'t str,
}

/// Why a `SKILL.md` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSkill {
    #[error("SKILL.md does not begin with `---`, a name and a description")]
    NoFront,
    #[error("the front of SKILL.md has no end: a line with `---` is missing")]
    NoEnd,
    #[error("the front of SKILL.md is no YAML: {0}")]
    NoYaml(String),
    #[error("SKILL.md says no `{0}`")]
    Missing(&'static str),
    #[error("`{0}` is no name of a skill: use up to 64 of a-z, 0-9 and single `-` between them")]
    BadName(String),
    #[error("SKILL.md says the name `{name}`, its folder is called `{folder}`")]
    OtherName { name: String, folder: String },
    #[error("the description has {0} characters, and may have {LONGEST_DESCRIPTION}")]
    LongDescription(usize),
}

impl<'t> SkillFile<'t> {
    /// Reads the text of the file in the folder of this name.
    pub fn read(text: &'t str, folder: &str) -> Result<Self, BadSkill> {
        let (front, body) = parts(text)?;
        let document = Document::parse(front.as_bytes(), LIMITS).map_err(|problems| {
            BadSkill::NoYaml(problems.first().map_or_else(String::new, ToString::to_string))
        })?;
        let said = |key: &'static str| match document.value(key).map(|node| &node.kind) {
            Some(Kind::Scalar { text, .. }) if !text.trim().is_empty() => Ok(text.trim()),
            _ => Err(BadSkill::Missing(key)),
        };
        let (name, description) = (said("name")?, said("description")?);
        let good = SkillName::new(name).map_err(|_| BadSkill::BadName(name.to_owned()))?;
        if name != folder {
            let (name, folder) = (name.to_owned(), folder.to_owned());
            return Err(BadSkill::OtherName { name, folder });
        }
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        match description.chars().count() {
            0..=LONGEST_DESCRIPTION => {}
            more => return Err(BadSkill::LongDescription(more)),
        }
        let tools = document.value("allowed-tools").map(words).unwrap_or_default();
        let forks = document.value("context").is_some_and(|it| words(it).trim() == "fork");
        let conduct = Conduct::of_name(name)
            .or_else(|| Conduct::of_tools(&tools))
            .or_else(|| forks.then_some(Conduct::StartsAgents));
        Ok(SkillFile { name: good, description, conduct, body })
    }

    /// The file as agents get it.
    pub fn handed(&self) -> String {
        let description = serde_json::Value::from(self.description.as_str());
        let SkillFile { name, body, .. } = self;
        format!("{FENCE}\nname: {name}\ndescription: {description}\n{FENCE}\n{body}")
    }
}

/// What stands between the fences, and what comes behind.
fn parts(text: &str) -> Result<(&str, &str), BadSkill> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != FENCE {
        return Err(BadSkill::NoFront);
    }
    let mut end = first.len();
    for line in lines {
        let next = end + line.len();
        if line.trim_end() == FENCE {
            return Ok((&text[first.len()..end], &text[next..]));
        }
        end = next;
    }
    Err(BadSkill::NoEnd)
}

/// All texts of a value, with blanks between.
fn words(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar { text, .. } => text.clone(),
        Kind::Sequence(items) => items.iter().map(words).collect::<Vec<_>>().join(" "),
        Kind::Mapping(_) | Kind::Refused => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_of_itself_is_read_and_nothing_else_is_handed_on() {
        let text = "---\r\nname: house-style\r\ndescription: >\n  How we\n  \"write\" code\nhooks: \
                    {PreToolUse: []}\nallowed-tools: [Bash, Read]\n---\n# House style\n---\nmore\n";
        let skill = SkillFile::read(text, "house-style").unwrap();
        assert_eq!(skill.description, "How we \"write\" code");
        assert_eq!(skill.conduct, None);
        let handed = skill.handed();
        assert_eq!(
            handed,
            "---\nname: house-style\ndescription: \"How we \\\"write\\\" code\"\n---\n# House \
             style\n---\nmore\n"
        );
        // What is handed on is a skill as well, and the same one.
        assert_eq!(SkillFile::read(&handed, "house-style").unwrap().handed(), handed);
    }

    #[test]
    fn what_keeps_to_no_rule_is_refused_with_the_rule() {
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025));
        for (text, expected) in [
            ("# Hello\n", "does not begin with `---`"),
            ("", "does not begin with `---`"),
            ("---\nname: a\n", "has no end"),
            ("---\nname: a\n---\n", "says no `description`"),
            ("---\ndescription: x\n---\n", "says no `name`"),
            ("---\nname: a\ndescription: ''\n---\n", "says no `description`"),
            ("---\nname: [a]\ndescription: x\n---\n", "says no `name`"),
            ("---\nname: b\ndescription: x\n---\n", "the name `b`, its folder is called `a`"),
            ("---\nname: A\ndescription: x\n---\n", "`A` is no name"),
            ("---\nname: a--b\ndescription: x\n---\n", "`a--b` is no name"),
            ("---\nname: ../a\ndescription: x\n---\n", "`../a` is no name"),
            ("---\nname: {a\n---\n", "is no YAML"),
            (&long, "has 1025 characters"),
        ] {
            let said = SkillFile::read(text, "a").unwrap_err().to_string();
            assert!(said.contains(expected), "{text:?}: {said}");
        }
    }

    #[test]
    fn what_starts_agents_or_manages_branches_is_known_by_name_and_by_its_tools() {
        let read = |name: &str, more: &str| {
            let text = format!("---\nname: {name}\ndescription: x\n{more}---\n");
            SkillFile::read(&text, name).unwrap().conduct
        };
        assert_eq!(read("plain", ""), None);
        assert_eq!(read("using-git-worktrees", ""), Some(Conduct::ManagesBranches));
        assert_eq!(read("subagent-driven-development", ""), Some(Conduct::StartsAgents));
        assert_eq!(read("mine", "allowed-tools: [Read, Task]\n"), Some(Conduct::StartsAgents));
        assert_eq!(read("mine", "context: fork\n"), Some(Conduct::StartsAgents));
        let branches = "allowed-tools: Bash(git checkout:*)\n";
        assert_eq!(read("mine", branches), Some(Conduct::ManagesBranches));
    }
}
