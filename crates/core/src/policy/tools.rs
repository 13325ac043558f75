//! Tools: which may be used, and what their input says about files.

use serde_json::Value;

use super::ground::Ground;
use super::paths::{User, Zone, some_of};
use super::verdict::{Denial, Judged, Rule, deny};
use super::{Policy, ToolCall};
use crate::ids::Role;
use crate::skill;

/// What claude puts before the names of skills that it has from us.
const OURS: &str = "blueflame:";

/// The tools whose input is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Read,
    Write,
    Edit,
    Notebook,
    Glob,
    Grep,
    Bash,
    Skill,
    StructuredOutput,
    AskUserQuestion,
}

impl Tool {
    fn named(name: &str) -> Option<Tool> {
        Some(match name {
            "Read" => Tool::Read,
            "Write" => Tool::Write,
            "Edit" => Tool::Edit,
            "NotebookEdit" => Tool::Notebook,
            "Glob" => Tool::Glob,
            "Grep" => Tool::Grep,
            "Bash" => Tool::Bash,
            "Skill" => Tool::Skill,
            "StructuredOutput" => Tool::StructuredOutput,
            "AskUserQuestion" => Tool::AskUserQuestion,
            _ => return None,
        })
    }

    /// The keys of its input that say where something is.
    fn places(self) -> &'static [&'static str] {
        match self {
            Tool::Read | Tool::Write | Tool::Edit => &["file_path"],
            Tool::Notebook => &["notebook_path"],
            Tool::Glob => &["pattern", "path"],
            Tool::Grep => &["pattern", "path", "glob"],
            Tool::Bash | Tool::Skill | Tool::StructuredOutput | Tool::AskUserQuestion => &[],
        }
    }

    fn changes_files(self) -> bool {
        match self {
            Tool::Write | Tool::Edit | Tool::Notebook => true,
            Tool::Read
            | Tool::Glob
            | Tool::Grep
            | Tool::Bash
            | Tool::Skill
            | Tool::StructuredOutput
            | Tool::AskUserQuestion => false,
        }
    }
}

/// What a verdict on this call is about.
pub(super) fn target(call: &ToolCall) -> String {
    let keys = ["file_path", "notebook_path", "command", "path", "pattern", "url", "skill"];
    let found = keys.iter().find_map(|key| call.input.get(key).and_then(Value::as_str));
    let mut target = found.unwrap_or(&call.tool).to_owned();
    if target.len() > 2000 {
        let mut end = 2000;
        while !target.is_char_boundary(end) {
            end -= 1;
        }
        target.truncate(end);
        target.push('…');
    }
    target
}

impl Policy {
    pub(super) fn judge_tool(&self, call: &ToolCall, ground: &dyn Ground) -> Judged {
        let tool = self.usable(&call.tool)?;
        let input = Input(&call.input);
        // Whoever is elsewhere reads every relative path in another way.
        let cwd = if call.cwd.is_empty() { ground.workspace() } else { &call.cwd };
        if !cwd.starts_with('/') {
            return deny(Rule::ToolInput, "`cwd` is not absolute.");
        }
        match self.place(cwd, "/", ground)?.zone {
            Zone::Inside(_) => {}
            Zone::Temporary | Zone::Skills | Zone::Null => {
                return deny(
                    Rule::PathOutside,
                    format!("`{cwd}` is outside. Go back with `cd {}`.", ground.workspace()),
                );
            }
        }
        self.judge_read(cwd, "/", ground, User::Tool)?;
        input.names_no_other_place(tool)?;
        match tool {
            Tool::StructuredOutput | Tool::AskUserQuestion => Ok(Rule::ToolHarmless),
            Tool::Skill => self.judge_skill(input),
            Tool::Read => self.judge_read(input.text("file_path")?, cwd, ground, User::Tool),
            Tool::Write => {
                input.text("content")?;
                self.judge_write(input.text("file_path")?, cwd, ground, User::Tool)
            }
            Tool::Edit => {
                input.text("old_string")?;
                input.text("new_string")?;
                self.judge_write(input.text("file_path")?, cwd, ground, User::Tool)
            }
            Tool::Notebook => {
                self.judge_write(input.text("notebook_path")?, cwd, ground, User::Tool)
            }
            Tool::Glob => {
                let directory = input.optional("path")?.unwrap_or(cwd);
                self.judge_read(directory, cwd, ground, User::Tool)?;
                self.judge_glob(input.text("pattern")?, directory, cwd, ground)
            }
            Tool::Grep => {
                input.text("pattern")?;
                let directory = input.optional("path")?.unwrap_or(cwd);
                self.judge_read(directory, cwd, ground, User::Tool)?;
                for glob in input.optional("glob")?.unwrap_or_default().split_whitespace() {
                    self.judge_glob(glob, directory, cwd, ground)?;
                    if !glob.starts_with('!') && self.seeks_secrets(glob) {
                        return deny(
                            Rule::PathSecret,
                            format!("`{glob}` looks for secrets. Search other files."),
                        );
                    }
                }
                Ok(Rule::PathRead)
            }
            Tool::Bash => self.judge_bash(input, cwd, ground),
        }
    }

    /// The tool, if agents of this role may use it at all.
    fn usable(&self, name: &str) -> Result<Tool, Denial> {
        let rules = &self.compiled.rules;
        let listed = |list: &[String]| list.iter().any(|listed| same_tool(listed, name));
        let usable = || some_of(&rules.allowed_tools);
        if listed(&rules.blocked_tools) {
            return deny(
                Rule::ToolBlocked,
                format!("the tool `{name}` is blocked. Use one of {}.", usable()),
            );
        }
        let Some(tool) = Tool::named(name) else {
            let (rule, why) = if listed(&rules.allowed_tools) {
                (Rule::ToolUnknown, "is unknown to the policy, so its input cannot be judged")
            } else {
                (Rule::ToolNotAllowed, "is not allowed")
            };
            return deny(rule, format!("the tool `{name}` {why}. Use one of {}.", usable()));
        };
        match tool {
            Tool::StructuredOutput => return Ok(tool),
            // Whoever has skills may use them; who has none is told what there is.
            Tool::Skill if rules.skills.is_some() => return Ok(tool),
            Tool::AskUserQuestion if rules.role == Role::Planner => return Ok(tool),
            Tool::AskUserQuestion => {
                return deny(
                    Rule::ToolRole,
                    "only planners ask questions. Decide yourself, and say how in your answer.",
                );
            }
            Tool::Read
            | Tool::Write
            | Tool::Edit
            | Tool::Notebook
            | Tool::Glob
            | Tool::Grep
            | Tool::Bash
            | Tool::Skill => {}
        }
        if !listed(&rules.allowed_tools) {
            return deny(
                Rule::ToolNotAllowed,
                format!("the tool `{name}` is not allowed. Use one of {}.", usable()),
            );
        }
        if tool.changes_files() && !rules.writes() {
            return deny(
                Rule::ToolRole,
                format!("a {} changes no files. Describe the change instead.", rules.role),
            );
        }
        Ok(tool)
    }

    fn judge_skill(&self, input: Input<'_>) -> Judged {
        let asked = input.text("skill")?;
        let name = skill::plain(asked.strip_prefix(OURS).unwrap_or(asked));
        let given = self.compiled.rules.skills.as_ref().map_or(&[][..], |skills| &skills.names);
        if given.iter().any(|given| given.as_str() == name) {
            return Ok(Rule::ToolSkill);
        }
        let names: Vec<String> = given.iter().map(ToString::to_string).collect();
        let (asked, names) = (asked.escape_debug(), some_of(&names));
        deny(
            Rule::ToolSkill,
            format!("the skill `{asked}` was not given to you. What there is: {names}."),
        )
    }

    fn judge_bash(&self, input: Input<'_>, cwd: &str, ground: &dyn Ground) -> Judged {
        if input.0.get("run_in_background").is_some_and(|value| *value != Value::Bool(false)) {
            return deny(
                Rule::ToolBackground,
                "commands in the background would outlive the call. Run it in the foreground.",
            );
        }
        let command = input.text("command")?;
        // Another key may say where the command runs, or how it is confined.
        let known = ["command", "description", "timeout", "run_in_background"];
        let says = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        let keys = input.0.as_object().into_iter().flatten();
        for (key, value) in keys {
            if !known.contains(&key.as_str()) && says(value) {
                let key = key.escape_debug();
                return deny(
                    Rule::ToolInput,
                    format!("what `{key}` does to a command is not known. Leave it out."),
                );
            }
        }
        self.judge_command(command, cwd, ground)
    }
}

/// `Task` and `Agent` are two names of one tool.
fn same_tool(listed: &str, used: &str) -> bool {
    listed == used || matches!((listed, used), ("Task", "Agent") | ("Agent", "Task"))
}

/// A tool's input, from which texts are taken.
#[derive(Clone, Copy)]
struct Input<'i>(&'i Value);

impl<'i> Input<'i> {
    fn text(self, key: &str) -> Result<&'i str, Denial> {
        match self.optional(key)? {
            Some(text) => Ok(text),
            None => deny(Rule::ToolInput, format!("`{key}` is missing. Call the tool with it.")),
        }
    }

    /// A key that is not known to say a place, and does, would not be judged.
    fn names_no_other_place(self, tool: Tool) -> Result<(), Denial> {
        const SPEAKING: &[&str] = &["path", "file", "dir", "cwd", "root", "uri", "url", "edits"];
        if tool.places().is_empty() {
            return Ok(());
        }
        let unexpected = |key: &str| {
            let key = key.to_ascii_lowercase();
            !tool.places().contains(&key.as_str()) && SPEAKING.iter().any(|it| key.contains(it))
        };
        let says =
            |value: &Value| !matches!(value, Value::Null | Value::Bool(_) | Value::Number(_));
        let mut keys = self.0.as_object().into_iter().flatten();
        match keys.find(|(key, value)| unexpected(key) && says(value)) {
            None => Ok(()),
            Some((key, _)) => deny(
                Rule::ToolInput,
                format!("what `{}` is for is not known. Leave it out.", key.escape_debug()),
            ),
        }
    }

    fn optional(self, key: &str) -> Result<Option<&'i str>, Denial> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => deny(Rule::ToolInput, format!("`{key}` is not text. Give it as text.")),
        }
    }
}
