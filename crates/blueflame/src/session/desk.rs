//! The desk at which the person is asked, on a thread of its own: people take
//! their time, and a terminal blocks.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use blueflame_core::event::Event;
use blueflame_core::forecast::Forecast;
use blueflame_core::gate::{Answer, Gate};
use blueflame_core::ids::{AgentId, Role};
use blueflame_core::state::{PlanStep, State};
use tokio::sync::mpsc::UnboundedSender;

use super::post::{Occurrence, Post};
use super::review;
use super::site::Site;
use crate::attempt::messages::Command;
use crate::executor::Question;
use crate::people::{self, Cancel, Lent, Occasion, Respondent, Unanswered};

/// What is put to the person.
enum Request {
    Gate { gate: Gate, state: Box<State>, site: Arc<Site> },
    Questions { ticket: String, questions: Vec<Question>, commands: UnboundedSender<Command> },
}

#[derive(Debug)]
pub struct Desk {
    /// `None` once it is closed.
    requests: Option<Sender<(Request, Cancel)>>,
    clerk: Option<JoinHandle<Vec<String>>>,
    /// Whether an editor or pager of the person has the terminal.
    lent: Option<Lent>,
    post: Post,
    /// The gate that is being asked.
    asking: Option<Cancel>,
    /// Questions of planners, with whose they are and their ticket.
    questions: Vec<(AgentId, String, Cancel)>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Request::Gate { gate, .. } => write!(f, "{gate:?}"),
            Request::Questions { ticket, .. } => write!(f, "questions {ticket}"),
        }
    }
}

impl Desk {
    pub fn open(mut respondent: Respondent, post: Post) -> Desk {
        let (requests, waiting) = mpsc::channel::<(Request, Cancel)>();
        let (answers, lent) = (post.clone(), respondent.lent());
        let clerk = thread::spawn(move || {
            while let Ok((request, cancel)) = waiting.recv() {
                serve(&mut respondent, request, &cancel, &answers);
            }
            respondent.unused()
        });
        Desk {
            requests: Some(requests),
            clerk: Some(clerk),
            lent,
            post,
            asking: None,
            questions: Vec::new(),
        }
    }

    pub fn ask(&mut self, gate: Gate, state: State, site: Arc<Site>) {
        let request = Request::Gate { gate, state: Box::new(state), site };
        self.asking = self.put(request);
    }

    pub fn put_questions(
        &mut self,
        agent: AgentId,
        ticket: String,
        questions: Vec<Question>,
        commands: UnboundedSender<Command>,
    ) {
        let request = Request::Questions { ticket: ticket.clone(), questions, commands };
        if let Some(cancel) = self.put(request) {
            self.questions.push((agent, ticket, cancel));
        }
    }

    /// A planner does not want to know any more: one question, or all of its
    /// questions because it is gone.
    pub fn take_back(&mut self, agent: &AgentId, ticket: Option<&str>) {
        let meant = |whose: &AgentId, which: &str| {
            whose == agent && ticket.is_none_or(|ticket| ticket == which)
        };
        for (_, _, cancel) in self.questions.extract_if(.., |(agent, it, _)| meant(agent, it)) {
            cancel.withdraw();
        }
    }

    /// Takes the open gate back.
    pub fn withdraw(&mut self) {
        if let Some(cancel) = self.asking.take() {
            cancel.withdraw();
        }
    }

    /// Takes everything back that the person is asked.
    pub fn withdraw_all(&mut self) {
        self.withdraw();
        for (_, _, cancel) in self.questions.drain(..) {
            cancel.withdraw();
        }
    }

    /// Whether a Ctrl-C is meant for a program of the person.
    pub fn is_lent(&self) -> bool {
        self.lent.as_ref().is_some_and(Lent::is_lent)
    }

    /// Nobody is asked any more. Gives the prepared answers that were never
    /// asked for.
    pub fn close(&mut self) -> Vec<String> {
        self.withdraw_all();
        self.requests = None;
        self.clerk.take().and_then(|clerk| clerk.join().ok()).unwrap_or_default()
    }

    fn put(&mut self, request: Request) -> Option<Cancel> {
        match Cancel::new() {
            Ok(cancel) => {
                if let Some(requests) = &self.requests {
                    let _ = requests.send((request, cancel.clone()));
                }
                Some(cancel)
            }
            Err(error) => {
                let why = format!("nobody can be asked: {error}");
                self.post.send(Occurrence::Broken(why));
                None
            }
        }
    }
}

fn serve(respondent: &mut Respondent, request: Request, cancel: &Cancel, post: &Post) {
    match request {
        Request::Gate { gate, state, site } => {
            match answer(respondent, &gate, &state, &site, cancel) {
                Ok(answer) => post.fact(Event::GateAnswered { gate, answer }),
                Err(why) => unanswered(why, post),
            }
        }
        Request::Questions { ticket, questions, commands } => {
            match respondent.answer_questions(&questions, cancel) {
                Ok(answers) => {
                    let _ = commands.send(Command::Answer { ticket, answers });
                    post.send(Occurrence::Answered);
                }
                Err(why) => unanswered(why, post),
            }
        }
    }
}

/// What was decided beforehand, or else what the person says who is shown the work.
fn answer(
    respondent: &mut Respondent,
    gate: &Gate,
    state: &State,
    site: &Site,
    cancel: &Cancel,
) -> Result<Answer, Unanswered> {
    let tasks_file = site.repository.join(site.config.project.tasks_file.as_str());
    let occasion = Occasion::new(gate, state, &site.config, &site.repository, &tasks_file);
    if let Some(answer) = respondent.prepared(&occasion, cancel)? {
        return Ok(answer);
    }
    let page = review::page(site, state, gate);
    let diff = review::task_diff(site, state, gate);
    let occasion = Occasion {
        changeset: page.as_ref(),
        diff: diff.as_deref(),
        forecast: forecast(gate, state),
        ..occasion
    };
    respondent.ask(&occasion, cancel)
}

fn unanswered(why: Unanswered, post: &Post) {
    match why {
        Unanswered::Withdrawn | Unanswered::Interrupted => {}
        why => post.send(Occurrence::Unanswered(why)),
    }
}

/// What a plan will probably cost, while there is a question about it.
fn forecast(gate: &Gate, state: &State) -> Option<people::Forecast> {
    let (Gate::Plan, PlanStep::Proposed(plan)) = (gate, &state.planning.step) else { return None };
    let cost = Forecast::of(&state.rules, plan)?.cost;
    let learned = state.rules.estimates.learned.as_ref();
    let workers = learned.and_then(|it| it.roles.iter().find(|it| it.role == Role::Worker));
    let off_percent = workers.and_then(|it| it.cost_off_percent);
    Some(people::Forecast { least: cost.once, most: cost.with_retries, off_percent })
}
