//! Terminals that close, while agents are at work and while a question is open.

use std::cell::RefCell;

use rustix::process::Signal;

use super::{both_wait, everything_landed, stage, waiting};
use crate::stage::{Stage, wait_until};
use crate::terminal::Terminal;

#[test]
fn a_hang_up_is_a_stop_in_order() {
    let stage = waiting("");
    let mut running = stage.begin();
    both_wait(&mut running);
    running.signal(Signal::HUP);
    running.end().exits(130).says("stopped; nothing is lost").says("blueflame resume");
    wait_until("no process is left", || stage.processes().is_empty());
    stage.signal("go");
    stage.resume().exits(0);
    everything_landed(&stage);
}

/// The program with a terminal of its own, as a shell in a window has it: when the
/// window closes, the kernel hangs up on everyone in it.
fn in_a_window(stage: &Stage, arguments: &[&str]) -> Terminal {
    let mut command = stage.env.command("setsid");
    command.args(["--ctty", "--wait", crate::stage::BLUEFLAME]).args(arguments);
    command.current_dir(stage.repository());
    Terminal::start(command, (100, 40))
}

/// Closes the window and waits until the program has ended by itself.
fn close(mut terminal: Terminal) {
    terminal.screen = None;
    let child = RefCell::new(&mut terminal.child);
    wait_until("it has ended", || child.borrow_mut().try_wait().unwrap().is_some());
}

#[test]
fn a_window_that_closes_while_agents_work_stops_the_session_in_order() {
    let stage = waiting("");
    let terminal = in_a_window(&stage, &stage.run_arguments());
    let started = || stage.events("agent.started").len() == 2 && stage.requests().len() == 2;
    wait_until("both agents are at work", started);
    close(terminal);
    wait_until("the session is suspended", || !stage.events("session.suspended").is_empty());
    wait_until("no process is left", || stage.processes().is_empty());
    stage.signal("go");
    stage.resume().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_window_that_closes_on_a_question_leaves_it_open() {
    let stage = stage();
    let mut terminal = in_a_window(&stage, &["run", "--task", "Do it.", "--plan", "../plan.yaml"]);
    wait_until("the plan is asked about", || stage.gates() == ["plan"]);
    terminal.read_until("pprove");
    close(terminal);
    wait_until("no process is left", || stage.processes().is_empty());
    assert_eq!(stage.events("gate.answered"), Vec::<serde_json::Value>::new());
    stage.resume().exits(0);
    everything_landed(&stage);
}

/// A session was left on its first question, and somebody begins another.
fn begun_again(answer: &str, then: &str) -> Stage {
    let stage = stage();
    stage.decide("plan: []\n");
    stage.run().exits(4);
    let mut terminal = in_a_window(&stage, &["run", "--task", "More.", "--plan", "../plan.yaml"]);
    let asked = terminal.read_until("instead of beginning another? [Y/n] ");
    assert!(asked.contains(&format!("{} was left unfinished", stage.session_id())), "{asked}");
    terminal.type_in(answer);
    terminal.read_until(then);
    close(terminal);
    wait_until("no process is left", || stage.processes().is_empty());
    stage
}

#[test]
fn run_offers_to_go_on_with_what_was_left() {
    let stage = begun_again("\n", "goes on");
    assert_eq!(stage.sessions().len(), 1);
    let stage = begun_again("n\n", "begins");
    assert_eq!(stage.sessions().len(), 2);
}
