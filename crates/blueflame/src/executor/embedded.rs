//! The agent that is part of Blue Flame: the same program, called `__agent`.

use std::ffi::OsString;

use super::abilities::{Output, OwnTokens};
use super::skill_list::with_skills;
use super::stream::{Stream, Unjudged};
use super::{Abilities, Conversation, Executor, Ground, Launch, Order, Tested};

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

    fn abilities(&self) -> Abilities {
        Abilities { tokens: OwnTokens::AtItsEnd, output: Output::Tool { tries: 5 }, asks: false }
    }

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch {
        let system = ground.files.join("system-prompt.md");
        let skills = ground.skills(order);
        let mut files = vec![(system.clone(), with_skills(&order.system, order, ground, "Read"))];
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
        }
    }

    fn converse(&self, order: &Order) -> Box<dyn Conversation> {
        // It makes no call without a verdict, and says itself why it made none.
        Box::new(Stream::new(order, Unjudged::AnyError))
    }
}
