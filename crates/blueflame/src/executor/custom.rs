//! A program of the person's own that keeps the contract in docs/executors.md.
//!
//! It finds everything in its environment: the gateway, the model, the hook that it
//! has to ask. Nothing is known about such a program, so what it says counts for
//! little: the gateway finds calls that were not judged, as it does for others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use blueflame_core::config::{CustomExecutor, Dialect as Written};
use blueflame_gateway::calls::{Calls, Customs, Made};
use serde_json::Value;

use super::abilities::{Output, OwnTokens};
use super::hooked::{self, Hooked, Manner};
use super::last_message::{self, take_output};
use super::stream::{Stream, Unjudged};
use super::{
    Abilities, Account, Call, Conversation, Executor, Ground, Launch, Order, Ruling, Sight, Step,
    Tested, Told, beginning, codex, opencode,
};
use crate::hook::wire::Dialect;

#[derive(Clone, Debug)]
pub struct Custom {
    name: String,
    command: Vec<String>,
    /// In whose words it tells of its run.
    written: Written,
}

impl Custom {
    pub fn new(name: &str, described: &CustomExecutor) -> Custom {
        let (command, written) = (described.command.clone(), described.dialect);
        Custom { name: name.to_owned(), command, written }
    }

    /// Whether its calls are judged over its standard input and output.
    fn asks_in_its_stream(&self) -> bool {
        self.written == Written::ClaudeStream
    }
}

impl Executor for Custom {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> Option<&str> {
        self.command.first().map(String::as_str)
    }

    fn tested(&self) -> Option<Tested> {
        None
    }

    fn remedy(&self) -> &'static str {
        "name a program in PATH, or an absolute path, in `executors.custom`"
    }

    fn hook(&self) -> Option<Dialect> {
        (!self.asks_in_its_stream()).then_some(Dialect::Custom)
    }

    fn speaks(&self) -> blueflame_gateway::dialect::Dialect {
        match self.written {
            Written::ClaudeStream => blueflame_gateway::dialect::Dialect::Messages,
            Written::CodexJson => blueflame_gateway::dialect::Dialect::Responses,
            Written::Plain | Written::OpencodeJson => blueflame_gateway::dialect::Dialect::Chat,
        }
    }

    fn needs_port(&self) -> bool {
        true
    }

    fn abilities(&self) -> Abilities {
        let tokens = match self.written {
            Written::Plain => OwnTokens::Never,
            Written::ClaudeStream => OwnTokens::AtItsEnd,
            Written::CodexJson => OwnTokens::WhenDone,
            Written::OpencodeJson => OwnTokens::EachAnswer,
        };
        Abilities { tokens, output: Output::LastMessage, asks: false }
    }

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch {
        let system = ground.files.join("system-prompt.md");
        let mut text = order.system.clone();
        if let Some(schema) = &order.output_schema {
            text = format!("{}\n\n{}\n", text.trim_end(), last_message::instructions(schema));
        }
        let port = ground.port.unwrap_or_default();
        let hook = ground.hook.as_ref().map(|hook| hook.command(Dialect::Custom));
        let skills = ground.skills(order);
        let environment: [(&str, OsString); 6] = [
            ("BLUEFLAME_GATEWAY", format!("http://127.0.0.1:{port}/v1").into()),
            ("BLUEFLAME_TOKEN", ground.token.into()),
            ("BLUEFLAME_MODEL", order.plain_model().into()),
            ("BLUEFLAME_SYSTEM", system.clone().into()),
            ("BLUEFLAME_TOOLS", order.tools.join(",").into()),
            ("BLUEFLAME_HOOK", hook.unwrap_or_default().into()),
        ];
        let mut environment: BTreeMap<String, OsString> =
            environment.map(|(name, value)| (name.to_owned(), value)).into();
        if let Some(skills) = &skills {
            environment.insert("BLUEFLAME_SKILLS".to_owned(), skills.into());
        }
        Launch {
            program: ground.program.to_owned(),
            arguments: self.command.iter().skip(1).map(Into::into).collect(),
            environment,
            files: vec![(system, text)],
            places: skills.into_iter().collect(),
        }
    }

    fn converse(&self, order: &Order) -> Box<dyn Conversation> {
        match self.written {
            Written::Plain => Box::new(Talk {
                prompt: order.prompt.clone(),
                schema: order.output_schema.clone(),
                hooked: Hooked::new(MANNER, order),
                account: Account::default(),
            }),
            // Nothing that it says excuses a result of a call that nobody judged.
            Written::ClaudeStream => {
                Box::new(Stream::with_output_in_words(order, Unjudged::Marked(&[])))
            }
            Written::CodexJson => Box::new(codex::talk::Talk::of(order, &order.prompt, MANNER)),
            Written::OpencodeJson => Box::new(opencode::talk::Talk::of(order, MANNER)),
        }
    }
}

const MANNER: Manner = Manner {
    customs: Customs {
        not_made: |_, _| false,
        denied: "denied by Blue Flame",
        needs_no_verdict: |_| false,
    },
    wanted,
};

#[derive(Debug)]
struct Talk {
    prompt: String,
    schema: Option<Value>,
    hooked: Hooked,
    account: Account,
}

/// What it calls its tools is its own affair: it says what it will do in the words
/// that the policy has for that.
#[expect(clippy::unnecessary_wraps, reason = "others cannot always say it")]
fn wanted(_: &Made, hook: hooked::Told<'_>) -> Result<Vec<Call>, String> {
    let (tool, cwd) = (hook.tool.to_owned(), hook.cwd.to_owned());
    Ok(vec![Call { tool, input: hook.input.clone(), cwd }])
}

impl Conversation for Talk {
    fn open(&mut self) -> Vec<Step> {
        vec![Step::Send(std::mem::take(&mut self.prompt)), Step::CloseInput]
    }

    fn heard(&mut self, line: &[u8]) -> Vec<Step> {
        let line = String::from_utf8_lossy(line);
        if !self.account.text.is_empty() {
            self.account.text.push('\n');
        }
        self.account.text.push_str(&line);
        vec![Step::Show(Sight::Said { text: beginning(&line) })]
    }

    fn hooked(&mut self, ticket: &str, event: &Value) -> Vec<Step> {
        self.hooked.ask(ticket, event)
    }

    fn calls(&self) -> Option<Arc<Calls>> {
        Some(Arc::clone(&self.hooked.calls))
    }

    fn judged(&mut self, ticket: &str, ruling: &Ruling) -> Vec<Step> {
        self.hooked.judged(ticket, ruling).0
    }

    fn left(&mut self, code: Option<i32>) {
        if code == Some(0) {
            self.account.end = Told::Finished;
            if let Some(schema) = &self.schema {
                take_output(&mut self.account, schema);
            }
        }
    }

    fn account(&self) -> Account {
        self.account.clone()
    }
}
