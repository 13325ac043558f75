//! Machines that fall asleep: everyone stands still for longer than an attempt may
//! be silent, and goes on.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{both_wait, everything_landed, waiting};
use crate::stage::Stage;

/// An attempt may be silent for eight seconds with this.
const HEARTBEAT: &str = "limits: {heartbeat_interval: 1s, max_retries: 0}\n";
const SLEEP: Duration = Duration::from_secs(10);

fn attempts(stage: &Stage) -> Vec<Pid> {
    let started = stage.events("agent.started");
    let pid = |it: &Value| i32::try_from(it["process"]["pid"].as_i64().unwrap()).unwrap();
    started.iter().map(|it| Pid::from_raw(pid(it)).unwrap()).collect()
}

fn nobody_was_given_up(stage: &Stage) {
    assert_eq!(stage.events("agent.lost"), Vec::<Value>::new());
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    everything_landed(stage);
}

#[test]
fn whoever_wakes_up_first_does_not_take_the_others_for_dead() {
    let stage = waiting(HEARTBEAT);
    let mut running = stage.begin();
    both_wait(&mut running);
    // The attempts first: they have said nothing more when the other one wakes up.
    let attempts = attempts(&stage);
    for pid in &attempts {
        kill_process(*pid, Signal::STOP).unwrap();
    }
    running.signal(Signal::STOP);
    std::thread::sleep(SLEEP);
    running.signal(Signal::CONT);
    std::thread::sleep(Duration::from_secs(2));
    for pid in attempts {
        kill_process(pid, Signal::CONT).unwrap();
    }
    stage.signal("go");
    running.end().exits(0);
    nobody_was_given_up(&stage);
}

#[test]
fn an_orchestrator_that_slept_alone_goes_on() {
    let stage = waiting(HEARTBEAT);
    let mut running = stage.begin();
    both_wait(&mut running);
    running.signal(Signal::STOP);
    std::thread::sleep(SLEEP);
    stage.signal("go");
    running.signal(Signal::CONT);
    running.end().exits(0);
    nobody_was_given_up(&stage);
}
