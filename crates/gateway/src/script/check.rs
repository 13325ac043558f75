//! From a script as it was written to one that can be followed.

use std::time::Duration;

use blueflame_core::money::Usage;
use blueflame_core::yaml::{Document, DurationText, Limits, Problem, Problems, Severity, Spanned};

use super::answer::Ending;
use super::file::{FailFile, ReplyFile, ScriptFile, UsageFile};
use super::{Block, Reply, Rule, Script, When};

/// A script may hold the files that agents write.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 64, nodes: 200_000 };

/// Longer waits are mistakes; `hang_after` is there for endless ones.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

pub(super) fn read(bytes: &[u8]) -> Result<(Script, Vec<Problem>), Vec<Problem>> {
    let (file, problems) = Document::parse(bytes, LIMITS)?.read::<ScriptFile>();
    let mut rules = Vec::new();
    match file.and_then(|file| file.replies) {
        None if !problems.has_errors() => {
            problems.push(
                Problem::error("", "the script has no replies").hint("add a list `replies:`"),
            );
        }
        None => {}
        Some(replies) => {
            if replies.is_empty() {
                problems.push(Problem::error("replies", "is empty").at(replies.span, ""));
            }
            for (at, reply) in replies.value.into_iter().enumerate() {
                let line = reply.span.map_or(1, |span| line_of(bytes, span.start));
                let check = Check { path: format!("replies[{at}]"), problems: &problems };
                rules.push((reply.span, check.rule(reply, line)));
            }
        }
    }
    for (later, (span, rule)) in rules.iter().enumerate() {
        let earlier = rules[..later].iter().position(|(_, other)| other.when.covers(&rule.when));
        if let Some(earlier) = earlier
            && !problems.has_errors()
        {
            problems.push(
                Problem::warning(format!("replies[{later}]"), "is never given")
                    .at(*span, "")
                    .also(rules[earlier].0, "this reply is taken before it")
                    .hint("the first reply that fits is given: put the narrower one first"),
            );
        }
    }
    let failed = problems.has_errors();
    let problems = problems.into_sorted();
    if failed {
        return Err(problems);
    }
    let warnings = problems.into_iter().filter(|problem| problem.severity == Severity::Warning);
    let rules = rules.into_iter().map(|(_, rule)| rule).collect();
    Ok((Script { rules }, warnings.collect()))
}

fn line_of(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}

struct Check<'p> {
    path: String,
    problems: &'p Problems,
}

impl Check<'_> {
    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    fn rule(&self, reply: Spanned<ReplyFile>, line: usize) -> Rule {
        let span = reply.span;
        let ReplyFile { when, say, call, output, usage, delay, pause, fail, cut_after, hang_after } =
            reply.value;
        let when = when.unwrap_or_default();
        let ending = match (&cut_after, &hang_after) {
            (None, None) => Ending::Complete,
            (Some(cut), None) => Ending::CutAfter(cut.value),
            (None, Some(hang)) => Ending::HangAfter(hang.value),
            (Some(cut), Some(hang)) => {
                self.problems.push(
                    Problem::error(self.path("hang_after"), "excludes `cut_after`")
                        .at(hang.span, "")
                        .also(cut.span, "this cuts the stream"),
                );
                Ending::Complete
            }
        };
        let mut blocks: Vec<Block> =
            say.iter().map(|text| Block::Text(text.value.clone())).collect();
        for (at, call) in call.into_iter().flatten().enumerate() {
            let tool = call.value.tool.filter(|tool| !tool.is_empty());
            if tool.is_none() {
                self.problems.push(
                    Problem::error(self.path(&format!("call[{at}]")), "names no tool")
                        .at(call.span, "")
                        .hint("write `{tool: Read, input: {file_path: README.md}}`"),
                );
            }
            let input = call.value.input.map(|input| input.value);
            blocks.push(Block::Call {
                tool: tool.map(|tool| tool.value).unwrap_or_default(),
                input: input.unwrap_or_else(|| serde_json::json!({})),
            });
        }
        blocks.extend(output.map(|output| Block::Output(output.value)));
        let reply = match fail {
            Some(fail) => {
                if !blocks.is_empty() || usage.is_some() {
                    self.problems.push(
                        Problem::error(
                            self.path("fail"),
                            "excludes `say`, `call`, `output` and `usage`",
                        )
                        .at(fail.span, "")
                        .hint("to break off in the middle of an answer, use `cut_after`"),
                    );
                }
                self.fail(fail)
            }
            None if blocks.is_empty() && ending != Ending::HangAfter(0) => {
                self.problems.push(
                    Problem::error(&self.path, "says nothing")
                        .at(span, "")
                        .hint("add `say`, `call`, `output`, `fail` or `hang_after: 0`"),
                );
                Reply::Speak { blocks, usage: None }
            }
            None => Reply::Speak { blocks, usage: usage.map(|usage| claimed(&usage)) },
        };
        Rule {
            when: When {
                role: when.role,
                task: when.task,
                attempt: when.attempt,
                turn: when.turn,
                model: when.model,
                contains: when.contains,
            },
            line,
            reply,
            delay: self.wait("delay", delay).unwrap_or_default(),
            pause: self.wait("pause", pause).unwrap_or_default(),
            ending,
        }
    }

    fn fail(&self, fail: Spanned<FailFile>) -> Reply {
        let span = fail.span;
        let FailFile { status, retry_after, kind, message } = fail.value;
        let status = match status {
            None => {
                self.problems
                    .push(Problem::error(self.path("fail"), "needs the key `status`").at(span, ""));
                500
            }
            Some(status) => {
                if !(400..=599).contains(&status.value) {
                    self.problems.push(
                        Problem::error(
                            self.path("fail.status"),
                            format!("must be from 400 to 599, got {}", status.value),
                        )
                        .at(status.span, ""),
                    );
                }
                status.value
            }
        };
        Reply::Fail {
            status,
            retry_after: self.wait("fail.retry_after", retry_after),
            kind,
            message: message.unwrap_or_else(|| format!("scripted failure {status}")),
        }
    }

    fn wait(&self, key: &str, text: Option<Spanned<DurationText>>) -> Option<Duration> {
        let text = text?;
        let wait = text.0.parse::<jiff::SignedDuration>().ok();
        let wait = wait.and_then(|wait| Duration::try_from(wait).ok());
        let wait = wait.filter(|wait| *wait <= LONGEST_WAIT);
        if wait.is_none() {
            self.problems.push(
                Problem::error(
                    self.path(key),
                    format!("is not a duration up to an hour, got `{}`", text.0),
                )
                .at(text.span, "")
                .hint("write it like `200ms` or `1m 30s`"),
            );
        }
        wait
    }
}

fn claimed(usage: &UsageFile) -> Usage {
    Usage {
        input: usage.input.unwrap_or(0),
        output: usage.output.unwrap_or(0),
        cache_read: usage.cache_read.unwrap_or(0),
        cache_write: usage.cache_write.unwrap_or(0),
    }
}
