//! The agent that is part of Blue Flame: the same program, called `__agent`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use super::stream::{Stream, Unjudged};
use super::{Conversation, Executor, Ground, Launch, Order, Tested};
use crate::skills::Offered;

#[derive(Clone, Copy, Debug)]
pub struct Embedded;

impl Executor for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn program(&self) -> Option<&str> {
        None
    }

    fn tested(&self) -> Option<Tested> {
        None
    }

    fn remedy(&self) -> &'static str {
        "install Blue Flame again: it is part of it"
    }

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch {
        let system = ground.files.join("system-prompt.md");
        let skills = ground.skills(order);
        let mut files = vec![(system.clone(), instructions(order, skills.as_deref()))];
        let mut arguments: Vec<OsString> = vec!["__agent".into()];
        let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        option("--model", order.model.clone().into());
        option("--tools", order.tools.join(",").into());
        option("--system-prompt-file", system.into());
        if let Some(schema) = &order.output_schema {
            let path = ground.files.join("output-schema.json");
            option("--json-schema-file", path.clone().into());
            files.push((path, schema.to_string()));
        }
        if let Some(turns) = order.max_turns {
            option("--max-turns", turns.to_string().into());
        }
        let environment = [
            ("ANTHROPIC_UNIX_SOCKET".to_owned(), ground.gateway.into()),
            ("ANTHROPIC_AUTH_TOKEN".to_owned(), ground.token.into()),
        ]
        .into();
        Launch {
            program: ground.program.to_owned(),
            arguments,
            environment,
            files,
            places: skills.into_iter().collect(),
            links: Vec::new(),
        }
    }

    fn converse(&self, order: &Order) -> Box<dyn Conversation> {
        // It makes no call without a verdict, and says itself why it made none.
        Box::new(Stream::new(order, Unjudged::AnyError))
    }
}

/// The rules of the role, with what there is to learn from: it has no tool for
/// skills, and needs none to read a file.
fn instructions(order: &Order, skills: Option<&Path>) -> String {
    let Some(skills) = skills.filter(|_| order.tools.iter().any(|tool| tool == "Read")) else {
        return order.system.clone();
    };
    let mut text = format!("{}\n\n{SKILLS}\n", order.system.trim_end());
    for Offered { name, description, .. } in &order.skills {
        let path = skills.join(name.as_str()).join("SKILL.md");
        let _ = writeln!(text, "- {name}: {description} ({})", path.display());
    }
    text
}

const SKILLS: &str = "\
Skills are ways of working that others wrote down. Before you do what one of these is for, \
read its file with Read and follow it, as far as it does not contradict your instructions:";
