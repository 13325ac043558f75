//! One run: a prompt, then answers and tool calls in turn, until the model has
//! finished or a limit is reached.
//!
//! A run can be dropped at any moment; [`Agent::abandon`] then makes the
//! conversation whole again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use blueflame_core::money::Usage;
use serde_json::{Value, json};

use super::conversation::{self, Conversation, tool_result};
use super::events::{self, Ending, Outcome};
use super::judge::{Call, Judge};
use super::model::{Answer, Client, Failure, FailureKind, MOST_RETRIES, Next, Partial, Tries};
use super::output::Output;
use super::protocol::Verdict;
use super::schema::{self, Schema};
use super::tools::Tool;
use super::turn::{self, CallInput, ToolCall, Turn};

/// Outputs that do not fit before it is given up.
const MOST_MISFITS: u32 = 5;
/// Answers in a row that are not finished.
const MOST_CUTS: u32 = 3;
/// Answers that call tools although nobody is there to judge them.
const MOST_UNHEARD: u32 = 3;

const GO_ON: &str = "Your answer reached its length limit. Go on exactly where it broke off.";
const NUDGE: &str = "Finish by calling the tool StructuredOutput with your result.";

/// An agent with everything it needs.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) session: String,
    pub(super) cwd: PathBuf,
    pub(super) model: String,
    pub(super) tools: Vec<Tool>,
    pub(super) schema: Option<Schema>,
    pub(super) max_turns: Option<u32>,
    pub(super) conversation: Conversation,
    pub(super) client: Client,
    pub(super) judge: Judge,
    pub(super) out: Output,
    /// What the process has used, by model.
    pub(super) totals: BTreeMap<String, Usage>,
    pub(super) tally: Tally,
}

/// What is counted during a run, also if it never comes to its end.
#[derive(Debug, Default)]
pub(super) struct Tally {
    turns: u32,
    usage: Usage,
    denials: Vec<Value>,
    stop_reason: Option<String>,
}

/// What came of a tool call.
enum Called {
    Told(Result<String, String>),
    /// Not permitted, or nobody was there to permit it.
    Denied(String),
    /// The run's structured output.
    Output(Value),
    /// Structured output that does not fit.
    Misfit(String),
}

/// What came of the calls of one answer.
struct Made {
    output: Option<Value>,
    misfits: u32,
    all_denied: bool,
}

impl Agent {
    /// Works on a prompt to the end.
    pub(super) async fn run(&mut self, content: Value) -> Ending {
        let mut names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
        names.extend(self.schema.is_some().then_some(schema::TOOL));
        self.out.emit(&events::init(&self.session, &self.cwd, &names, &self.model)).await;
        let prompt = match conversation::prompt(content) {
            Ok(prompt) => prompt,
            Err(why) => return Ending::Broken { why },
        };
        self.conversation.say(prompt);
        match self.work().await {
            Ok(ending) => ending,
            Err(failure) => {
                self.out.emit(&events::assistant_error(&self.session, &failure)).await;
                Ending::ModelFailed(failure)
            }
        }
    }

    async fn work(&mut self) -> Result<Ending, Failure> {
        let (mut calling, mut cuts, mut misfits, mut unheard) = (0, 0, 0, 0);
        let mut nudged = false;
        // The words of an answer that comes in several parts.
        let mut said = String::new();
        loop {
            let answer = self.answer().await?;
            let turn = Turn::after(&answer);
            if turn != Turn::Refused {
                self.conversation.heard(&answer.blocks);
            }
            let cut = matches!(answer.stop_reason.as_deref(), Some("max_tokens" | "pause_turn"));
            cuts = if cut { cuts + 1 } else { 0 };
            if cuts > MOST_CUTS {
                self.close_open_calls("the answer reached its length limit too often").await;
                let why = format!("the model's answer was not finished {cuts} times in a row");
                return Err(Failure::new(FailureKind::MaxOutputTokens, why));
            }
            match turn {
                Turn::Calls(calls) => {
                    said.clear();
                    let made = self.make(calls).await;
                    misfits += made.misfits;
                    if let Some(output) = made.output {
                        let text = turn::words(&answer);
                        return Ok(Ending::Said { text, structured: Some(output) });
                    }
                    if misfits >= MOST_MISFITS {
                        return Ok(Ending::MaxStructuredOutputRetries { tries: misfits });
                    }
                    calling += 1;
                    if let Some(most) = self.max_turns.filter(|&most| calling >= most) {
                        return Ok(Ending::MaxTurns { most });
                    }
                    unheard += u32::from(made.all_denied && self.judge.is_gone());
                    if unheard >= MOST_UNHEARD {
                        let why = "the input has ended, so nobody judges tool calls any more";
                        return Ok(Ending::Broken { why: why.to_owned() });
                    }
                }
                Turn::Unfinished => {
                    said.push_str(&turn::words(&answer));
                    self.conversation.say([conversation::text(GO_ON)]);
                }
                Turn::Finished => {
                    said.push_str(&turn::words(&answer));
                    if self.schema.is_some() && !nudged {
                        nudged = true;
                        said.clear();
                        self.conversation.say([conversation::text(NUDGE)]);
                        continue;
                    }
                    return Ok(Ending::Said { text: said, structured: None });
                }
                Turn::Refused => {
                    let words = turn::words(&answer);
                    let why = if words.is_empty() {
                        "the model refused to answer".to_owned()
                    } else {
                        words
                    };
                    return Err(Failure::new(FailureKind::Refusal, why));
                }
                Turn::NoRoom => {
                    let why = "the conversation has become too long for the model";
                    return Err(Failure::new(FailureKind::InvalidRequest, why));
                }
            }
        }
    }

    /// The model's next answer, shown block by block.
    async fn answer(&mut self) -> Result<Answer, Failure> {
        let answer = self.ask().await?;
        self.tally.turns += 1;
        self.tally.stop_reason.clone_from(&answer.stop_reason);
        for block in &answer.blocks {
            let block = block.to_value();
            let event =
                events::assistant(&self.session, &answer.id, &answer.model, &block, answer.usage);
            self.out.emit(&event).await;
        }
        Ok(answer)
    }

    /// Asks until there is a whole answer, or no use in asking again.
    async fn ask(&mut self) -> Result<Answer, Failure> {
        let body = self.conversation.request().map_err(|error| {
            Failure::new(
                FailureKind::InvalidRequest,
                format!("the request cannot be written: {error}"),
            )
        })?;
        let mut tries = Tries::default();
        loop {
            let mut partial = Partial::default();
            let asked = self.client.ask(body.clone(), &mut partial).await;
            // Also what broke off is paid for.
            self.count(partial.model().to_owned(), partial.usage());
            let failure = match asked.and_then(|()| partial.finish()) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match tries.after(&failure, self.client.patience().retry_base) {
                Next::GiveUp => return Err(failure),
                Next::Again { retry, after } => {
                    let event =
                        events::api_retry(&self.session, &failure, retry, MOST_RETRIES, after);
                    self.out.emit(&event).await;
                    tokio::time::sleep(after).await;
                }
            }
        }
    }

    fn count(&mut self, model: String, usage: Usage) {
        if usage == Usage::default() {
            return;
        }
        self.tally.usage = self.tally.usage.plus(usage);
        let model = if model.is_empty() { self.model.clone() } else { model };
        let total = self.totals.entry(model).or_default();
        *total = total.plus(usage);
    }

    /// Makes the calls of one answer, one after the other.
    async fn make(&mut self, calls: Vec<ToolCall>) -> Made {
        let mut made = Made { output: None, misfits: 0, all_denied: true };
        for call in calls {
            let id = call.id.clone();
            let called = self.call(call).await;
            made.all_denied &= matches!(called, Called::Denied(_));
            let told = match called {
                Called::Told(told) => told,
                Called::Denied(why) => Err(why),
                Called::Output(value) => {
                    made.output = Some(value);
                    Ok("Structured output provided successfully".to_owned())
                }
                Called::Misfit(why) => {
                    made.misfits += 1;
                    Err(why)
                }
            };
            self.tell(tool_result(&id, &told)).await;
        }
        made
    }

    /// Makes one tool call, if it may be made.
    async fn call(&mut self, call: ToolCall) -> Called {
        let input = match call.input {
            CallInput::Whole(input) => input,
            CallInput::CutOff => {
                let why = "the answer reached its length limit inside this call, so it was not made; try in smaller parts";
                return Called::Told(Err(why.to_owned()));
            }
            CallInput::Malformed => {
                return Called::Told(Err("the input of the call is not a JSON object".to_owned()));
            }
        };
        if call.tool == schema::TOOL && self.schema.is_some() {
            if let Some(why) = self.denied(&call.id, &call.tool, &input).await {
                return Called::Denied(why);
            }
            return match self.schema.as_ref().map_or(Ok(()), |schema| schema.check(&input)) {
                Ok(()) => Called::Output(input),
                Err(why) => Called::Misfit(why),
            };
        }
        let tool = Tool::named(&call.tool).filter(|tool| self.tools.contains(tool));
        let Some(tool) = tool else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            let why = format!("there is no tool `{}`; there are {}", call.tool, names.join(", "));
            return Called::Told(Err(why));
        };
        let prepared = match tool.prepare(input, &self.cwd) {
            Ok(prepared) => prepared,
            Err(why) => return Called::Told(Err(why)),
        };
        if let Some(why) = self.denied(&call.id, &call.tool, &prepared.input).await {
            return Called::Denied(why);
        }
        Called::Told(prepared.run(&self.cwd).await)
    }

    /// Why a call may not be made, if that is so.
    async fn denied(&mut self, id: &str, tool: &str, input: &Value) -> Option<String> {
        match self.judge.judge(Call { id, tool, input }).await {
            Verdict::Allow => None,
            Verdict::Deny { reason } => {
                let denial = json!({"tool_name": tool, "tool_use_id": id, "tool_input": input});
                self.tally.denials.push(denial);
                Some(format!("the call was denied: {reason}"))
            }
        }
    }

    /// The result of a call, shown and taken down at once, so that a run that
    /// is dropped forgets nothing.
    async fn tell(&mut self, result: Value) {
        let event = events::user(&self.session, std::slice::from_ref(&result));
        self.conversation.say([result]);
        self.out.emit(&event).await;
    }

    async fn close_open_calls(&mut self, why: &str) {
        for id in self.conversation.open_calls() {
            self.tell(tool_result(&id, &Err(why.to_owned()))).await;
        }
    }

    /// Makes the conversation whole after a run was dropped.
    pub(super) async fn abandon(&mut self, why: &str) -> Ending {
        self.close_open_calls(why).await;
        Ending::Broken { why: why.to_owned() }
    }

    /// Tells how a run ended; the next one starts to count anew.
    pub(super) async fn report(&mut self, ending: Ending) -> Ending {
        let Tally { turns, usage, denials, stop_reason } = std::mem::take(&mut self.tally);
        let outcome = Outcome { ending, stop_reason, turns, usage, denials };
        self.out.emit(&events::result(&self.session, &outcome, &self.totals)).await;
        outcome.ending
    }
}
