//! Whether a recorded intent is what the core would decide today.
//!
//! A journal holds facts, which nobody decided, and intents, which the core
//! did. A replay proves the intents: the same state must lead to the same
//! decision, or the journal was written by other rules.

use crate::event::Event;
use crate::ids::{AgentId, Role};
use crate::state::State;

use super::decide;

/// Whether this event may follow this state as a decision of the core; facts
/// always may.
pub fn was_decided(state: &State, event: &Event) -> bool {
    if !is_intent(event) {
        return true;
    }
    let recorded = without_inputs(event.clone());
    decide(state)
        .iter()
        .filter_map(|action| action.intent(0, ""))
        .any(|intent| without_inputs(intent) == recorded)
}

/// Leaves out what the shell adds to a decision: names drawn at random and
/// the fingerprint of a file.
fn without_inputs(mut event: Event) -> Event {
    match &mut event {
        // Why it was this one explains the decision, and journals before did not.
        Event::AgentClaimed { agent, passed_over, .. } => {
            *agent = AgentId::from_number(Role::Planner, 0);
            passed_over.clear();
        }
        Event::CycleStarted { config, .. } => config.clear(),
        _ => {}
    }
    event
}

fn is_intent(event: &Event) -> bool {
    match event {
        Event::SessionSuspended
        | Event::SessionEnded { .. }
        | Event::CycleStarted { .. }
        | Event::ValidationStarted
        | Event::GateOpened { .. }
        | Event::GateWithdrawn { .. }
        | Event::AgentClaimed { .. }
        | Event::Granted { .. }
        | Event::StopSent { .. }
        | Event::InspectionStarted { .. }
        | Event::AcceptanceStarted { .. }
        | Event::MergePlanned { .. }
        | Event::FoldStarted { .. }
        | Event::VerifyStarted { .. }
        | Event::ChangesetDeferred { .. }
        | Event::LandStarted { .. }
        | Event::PublishStarted { .. }
        | Event::JointVerifyStarted { .. }
        | Event::HookStarted { .. } => true,
        Event::SessionStarted { .. }
        | Event::SessionProven { .. }
        | Event::SessionResumed { .. }
        | Event::StopRequested
        | Event::SessionObstructed { .. }
        | Event::MemorySampled { .. }
        | Event::ProviderLimited { .. }
        | Event::PauseEnded
        | Event::GateAnswered { .. }
        | Event::AgentStarted { .. }
        | Event::AgentStartFailed { .. }
        | Event::UsageReported { .. }
        | Event::GrantWanted { .. }
        | Event::SnapshotTaken { .. }
        | Event::AgentExited { .. }
        | Event::AgentLost { .. }
        | Event::InspectionFinished { .. }
        | Event::AcceptanceFinished { .. }
        | Event::FoldFinished { .. }
        | Event::VerifyFinished { .. }
        | Event::LandFinished { .. }
        | Event::PublishFinished { .. }
        | Event::PublishRequested { .. }
        | Event::JointVerifyFinished { .. }
        | Event::RevertRequested { .. }
        | Event::SessionCleaned { .. }
        | Event::HookFinished { .. } => false,
    }
}
