//! `blueflame log`: what happened in a session, event by event.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use crate::stderr::eprintln;
use blueflame_core::event::Event;
use blueflame_core::ids::{AgentId, ChangesetId, TaskId};
use blueflame_core::yaml::closest;

use super::{named_config, place};
use crate::cli::{Common, Log};
use crate::failure::{Failure, Kind};
use crate::history;
use crate::journal::{ReadError, Reader, Record, Step};
use crate::narrate;
use crate::stdout;
use crate::store::Store;

/// How often a followed journal is looked at even if nobody said that it was written.
const INTERVAL: Duration = Duration::from_secs(1);

pub fn run(arguments: &Log, common: &Common) -> Result<(), Failure> {
    check_names(arguments)?;
    let place = place(named_config(common)?.as_ref())?;
    let directory = Store::find(&place)?.resolve(arguments.session.as_deref())?;
    let path = directory.journal();
    let mut printer = Printer::new(arguments);
    let mut ended = false;
    let end = Reader::open(&path)?.follow(INTERVAL, |step| match step {
        Step::Record(record) => match record.event() {
            Ok(event) => {
                ended |= matches!(event, Event::SessionEnded { .. });
                printer.print(&record, &event)
            }
            Err(source) => {
                let unreadable = ReadError::Event { path: path.clone(), source };
                ControlFlow::Break(Err(unreadable.into()))
            }
        },
        Step::StartedOver => {
            printer.start_over();
            ended = false;
            ControlFlow::Continue(())
        }
        Step::NotYet if arguments.follow && !ended => ControlFlow::Continue(()),
        Step::NotYet => ControlFlow::Break(Ok(())),
    })?;
    if end.is_ok() && !printer.printed {
        explain_nothing(arguments, &path)?;
    }
    end
}

/// Tells a name that nothing has happened with from one that is not there.
fn explain_nothing(arguments: &Log, path: &Path) -> Result<(), Failure> {
    let (what, asked) = match (&arguments.task, &arguments.agent) {
        (Some(task), _) => ("task", task),
        (None, Some(agent)) => ("agent", agent),
        (None, None) => return Ok(()),
    };
    let mut known = BTreeSet::new();
    let history = history::fold(path, None, |moment| {
        known.extend(narrate::agent(moment.event).map(AgentId::to_string));
    })?;
    if arguments.task.is_some() {
        let tasks = history.state.board.tasks().iter();
        known = tasks.map(|task| task.spec.id.to_string()).collect();
    }
    if known.contains(asked) {
        eprintln!("nothing has happened with {what} {asked} yet");
        return Ok(());
    }
    let failure = Failure::new(Kind::Usage, format!("the session has no {what} `{asked}`"));
    if let Some(meant) = closest(asked, known.iter().map(String::as_str)) {
        return Err(failure.hint(format!("did you mean `{meant}`?")));
    }
    let mut names: Vec<String> = known.iter().take(10).map(|name| format!("`{name}`")).collect();
    match known.len() - names.len() {
        0 if names.is_empty() => names.push("none yet".to_owned()),
        0 => {}
        more => names.push(format!("{more} more")),
    }
    Err(failure.hint(format!("it has {}", names.join(", "))))
}

struct Printer<'a> {
    arguments: &'a Log,
    /// Agents of the task that was asked for.
    agents: BTreeSet<AgentId>,
    /// Changesets that hold the task that was asked for.
    changesets: BTreeSet<ChangesetId>,
    printed: bool,
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a Log) -> Self {
        Printer { arguments, agents: BTreeSet::new(), changesets: BTreeSet::new(), printed: false }
    }

    fn start_over(&mut self) {
        *self = Printer::new(self.arguments);
    }

    /// Prints one event if it is asked for. Stops when nobody reads any more.
    fn print(&mut self, record: &Record<'_>, event: &Event) -> ControlFlow<Result<(), Failure>> {
        if !self.is_asked_for(event) {
            return ControlFlow::Continue(());
        }
        self.printed = true;
        let line = if self.arguments.json {
            // The record without its place in the chain.
            let payload = record.payload();
            let members = payload.trim_start_matches('{');
            format!(
                "{{\"q\":{},\"ts\":\"{}\",\"e\":{},{members}",
                record.seq, record.at, record.epoch
            )
        } else {
            let time = record.at.strftime("%Y-%m-%d %H:%M:%SZ");
            format!("{:>5}  {time}  {}", record.seq, narrate::sentence(event))
        };
        stdout::write_on(&format!("{line}\n"))
    }

    fn is_asked_for(&mut self, event: &Event) -> bool {
        if let Some(asked) = &self.arguments.agent {
            return narrate::agent(event).is_some_and(|agent| agent.as_str() == asked);
        }
        match &self.arguments.task {
            Some(asked) => self.concerns(asked, event),
            None => true,
        }
    }

    /// Whether an event is about a task, one of its agents, or the changeset
    /// that holds it at this time.
    fn concerns(&mut self, asked: &str, event: &Event) -> bool {
        let asked = |task: &TaskId| task.as_str() == asked;
        match event {
            Event::MergePlanned { changesets } => {
                let holding = changesets.iter().filter(|planned| planned.tasks.iter().any(asked));
                self.changesets.extend(holding.map(|planned| planned.id.clone()));
            }
            // A guilty task is left out when its changeset is folded again.
            Event::FoldStarted { changeset, tasks } if !tasks.iter().any(asked) => {
                self.changesets.remove(changeset);
            }
            _ => {}
        }
        let agent = narrate::agent(event);
        let concerned = narrate::task(event).is_some_and(asked)
            || narrate::changeset(event).is_some_and(|id| self.changesets.contains(id));
        if concerned {
            self.agents.extend(agent.cloned());
        }
        concerned || agent.is_some_and(|agent| self.agents.contains(agent))
    }
}

/// Checks before anything is read that these can be names at all.
fn check_names(arguments: &Log) -> Result<(), Failure> {
    let bad = |error| Failure::new(Kind::Usage, error);
    if let Some(task) = &arguments.task {
        TaskId::new(task.clone()).map_err(bad)?;
    }
    if let Some(agent) = &arguments.agent {
        AgentId::new(agent.clone()).map_err(bad)?;
    }
    Ok(())
}
