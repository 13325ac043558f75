//! Clocks that are set during a session and between sessions. The program is given
//! another clock by a library that adds what a file says to the time of day.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use jiff::Timestamp;

use super::{both_wait, everything_landed, waiting};
use crate::stage::{RESUME, Stage};

const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    const char *name = getenv("SET_CLOCK");
    if (code == 0 && id == CLOCK_REALTIME && name) {
        long seconds = 0;
        FILE *file = fopen(name, "re");
        if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
        at->tv_sec += seconds;
    }
    return code;
}
"#;

const DAY: i64 = 86_400;

/// A clock that can be set: the library, and the file with the seconds.
struct Clock {
    library: String,
    file: PathBuf,
}

impl Clock {
    fn of(stage: &Stage) -> Clock {
        let (source, library) = (stage.env.path("clock.c"), stage.env.path("clock.so"));
        fs::write(&source, CLOCK).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        assert!(cc.status().unwrap().success());
        let clock = Clock { library: library.display().to_string(), file: stage.env.path("clock") };
        clock.set(0);
        clock
    }

    /// So many seconds before or after the right time. Nobody sees half of it.
    fn set(&self, seconds: i64) {
        let new = self.file.with_extension("new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(&new, &self.file).unwrap();
    }

    fn variables(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", &self.library), ("SET_CLOCK", self.file.to_str().unwrap())]
    }
}

fn days_ahead(stage: &Stage) -> i64 {
    let last = stage.journal().pop().unwrap();
    let at: Timestamp = last["ts"].as_str().unwrap().parse().unwrap();
    (at.as_second() - Timestamp::now().as_second() + 600).div_euclid(DAY)
}

/// The journal tells of no moment before the one it told of last.
fn assert_time_goes_on(stage: &Stage) {
    let all = stage.journal();
    let times: Vec<Timestamp> =
        all.iter().map(|it| it["ts"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_clock_that_jumps_ahead_and_back_during_a_session_changes_nothing() {
    let stage = waiting("");
    let clock = Clock::of(&stage);
    let mut running = stage.begin_with(&clock.variables());
    both_wait(&mut running);
    clock.set(DAY);
    stage.signal("go");
    running.wait_for_event("agent.exited", 1);
    clock.set(-DAY);
    running.end().exits(0);
    assert_eq!(days_ahead(&stage), 1, "the clock was set");
    assert_time_goes_on(&stage);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    everything_landed(&stage);
}

#[test]
fn a_session_whose_last_record_lies_in_the_future_goes_on() {
    let stage = waiting("");
    let clock = Clock::of(&stage);
    let mut running = stage.begin_with(&clock.variables());
    both_wait(&mut running);
    clock.set(30 * DAY);
    running.signal(rustix::process::Signal::INT);
    running.end().exits(130);
    assert_eq!(days_ahead(&stage), 30, "the clock was set");
    stage.signal("go");
    stage.start(&RESUME).end().exits(0);
    assert_time_goes_on(&stage);
    everything_landed(&stage);
    for command in [&["status"][..], &["log"], &["cost"], &["cleanup"]] {
        stage.blueflame(command).exits(0);
    }
}
