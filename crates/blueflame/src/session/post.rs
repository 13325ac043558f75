//! What reaches the session from everything that it set in motion.

use blueflame_core::event::Event;
use blueflame_core::ids::AgentId;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::executor::Question;
use crate::landing::LandingError;
use crate::people::Unanswered;

/// Something that happened.
#[derive(Debug)]
pub enum Occurrence {
    /// A fact for the journal.
    Fact(Event),
    /// What an agent does right now, for whoever watches.
    Seen { agent: AgentId, what: String },
    /// A planner asks the person.
    Asked { agent: AgentId, ticket: String, questions: Vec<Question> },
    /// A planner's question that nobody has to answer any more.
    TakenBack { agent: AgentId, ticket: String },
    /// The person answered a planner.
    Answered,
    /// Nobody answered a question.
    Unanswered(Unanswered),
    /// What an agent left cannot be taken over for now. It stays where it is, and
    /// the agent's end is not told before.
    NotTaken { agent: AgentId, reason: String },
    /// Only the person can clear the way.
    Obstructed(String),
    /// Worth knowing, and no more.
    Warning(String),
    /// The session cannot go on.
    Broken(String),
}

/// Why something could not be done.
#[derive(Debug)]
pub enum Trouble {
    /// The repository is in a state that only the person can put right.
    Theirs(String),
    /// It should not happen.
    Ours(String),
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Trouble::Ours(why)
    }
}

impl From<LandingError> for Trouble {
    fn from(error: LandingError) -> Self {
        let why = error.to_string();
        if error.is_for_the_person() { Trouble::Theirs(why) } else { Trouble::Ours(why) }
    }
}

/// Where occurrences are sent.
#[derive(Clone, Debug)]
pub struct Post(UnboundedSender<Occurrence>);

impl Post {
    pub fn office() -> (Post, UnboundedReceiver<Occurrence>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Post(sender), receiver)
    }

    /// A session that is over does not listen any more.
    pub fn send(&self, occurrence: Occurrence) {
        let _ = self.0.send(occurrence);
    }

    pub fn trouble(&self, trouble: Trouble) {
        self.send(match trouble {
            Trouble::Theirs(why) => Occurrence::Obstructed(why),
            Trouble::Ours(why) => Occurrence::Broken(why),
        });
    }

    pub fn fact(&self, event: Event) {
        self.send(Occurrence::Fact(event));
    }
}
