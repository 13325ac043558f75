//! `blueflame log`: what happened in a session, event by event.

use std::ops::ControlFlow;
use std::time::Duration;

use blueflame_core::event::Event;
use blueflame_core::ids::{AgentId, TaskId};

use super::{named_config, place};
use crate::cli::{Common, Log};
use crate::failure::{Failure, Kind};
use crate::journal::{ReadError, Reader, Record, Step};
use crate::narrate;
use crate::stdout;
use crate::store::Store;

/// How often a followed journal is looked at.
const INTERVAL: Duration = Duration::from_millis(200);

pub fn run(arguments: &Log, common: &Common) -> Result<(), Failure> {
    check_names(arguments)?;
    let place = place(named_config(common)?.as_ref())?;
    let directory = Store::find(&place)?.resolve(arguments.session.as_deref())?;
    let path = directory.journal();
    let mut printer = Printer { arguments, agents: Vec::new() };
    let mut ended = false;
    Reader::open(&path)?.follow(INTERVAL, |step| match step {
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
            printer.agents.clear();
            ended = false;
            ControlFlow::Continue(())
        }
        Step::NotYet if arguments.follow && !ended => ControlFlow::Continue(()),
        Step::NotYet => ControlFlow::Break(Ok(())),
    })?
}

struct Printer<'a> {
    arguments: &'a Log,
    /// Agents of the task that was asked for.
    agents: Vec<AgentId>,
}

impl Printer<'_> {
    /// Prints one event if it is asked for. Stops when nobody reads any more.
    fn print(&mut self, record: &Record<'_>, event: &Event) -> ControlFlow<Result<(), Failure>> {
        if !self.is_asked_for(event) {
            return ControlFlow::Continue(());
        }
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
        let agent = narrate::agent(event);
        if let Some(asked) = &self.arguments.agent {
            return agent.is_some_and(|agent| agent.as_str() == asked);
        }
        let Some(asked) = &self.arguments.task else { return true };
        if narrate::task(event).is_some_and(|task| task.as_str() == asked) {
            self.agents.extend(agent.cloned());
            return true;
        }
        agent.is_some_and(|agent| self.agents.contains(agent))
    }
}

/// Checks names before anything is read, so that a typo is not an empty list.
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
