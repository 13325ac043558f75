//! A zoo of agents that misbehave, each in a whole session: it ends as a named
//! outcome, what the rules say follows, and nobody else is disturbed.

mod cage;

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use cage::{Animal, visit};

use crate::script::{Script, bash, commit, plan, task};
use crate::stage::{Stage, wait_until};

const fn animal(
    name: &'static str,
    acts: &'static str,
    ends: &'static str,
    says: &'static str,
) -> Animal {
    Animal { name, acts, ends, says }
}

/// Whoever is not done within its time is ended, whatever it thinks of that.
#[test]
fn those_that_do_not_come_to_an_end() {
    visit(
        "limits: {agent_timeout: 10s, max_retries: 1}\n",
        "",
        &[
            animal("sleeps past its time", "open; sleep 600", "timed_out", ""),
            animal(
                "ignores every request to stop",
                "trap '' TERM INT HUP; open; while :; do sleep 1; done",
                "timed_out",
                "",
            ),
            animal("never reads what it is told", "exec sleep 600", "timed_out", ""),
            animal("stops itself", "open; kill -STOP $$; sleep 600", "timed_out", ""),
            animal("closes its output", "open; exec >&- 2>&-; sleep 600", "timed_out", ""),
            animal(
                "is busy for ever",
                "open; while :; do echo '{\"type\":\"assistant\"}'; sleep 0.1; done",
                "timed_out",
                "",
            ),
        ],
    );
}

/// Long before its time is up, whoever neither says nor does anything is ended;
/// whoever waits for a command of its own is not.
#[test]
fn those_that_fall_silent() {
    let silent = visit(
        "limits: {idle_timeout: 3s, max_retries: 1}\n",
        "",
        &[
            animal("falls silent", "open; sleep 600", "timed_out", ""),
            animal("stops itself in silence", "open; kill -STOP $$; sleep 600", "timed_out", ""),
        ],
    );
    let why = "stopped, because it gave no sign of life for 3 s";
    assert_eq!(silent.told.stderr.matches(why).count(), 2, "{}", silent.told);
}

#[test]
fn a_command_that_is_silent_for_long_is_no_silence_of_its_agent() {
    let task = task("task-001", "one", "src/a.txt");
    let mut calls = vec![bash("sh wait.sh go")];
    calls.extend(commit("task-001", &[("src/a.txt", "a\n")]));
    let script = Script::new().attempt("task-001", 1, &calls).passes();
    let stage = Stage::new("limits: {idle_timeout: 1s, max_retries: 0}\n")
        .plan(&plan(&[task]))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 1);
    wait_until("it waits", || stage.processes().iter().any(|line| line.contains("wait.sh")));
    std::thread::sleep(Duration::from_secs(4));
    stage.signal("go");
    running.end().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
}

/// In a session of its own, deaf to signals and with a parent that is gone.
const DAEMON: &str = "open; work
(setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &)
finished";

/// Somebody who waits to be called, and goes on doing so.
const LISTENS: &str = "open
PORT=$HOME/port \"$this_test\" --ignored --exact zoo::an_agent_that_listens >/dev/null 2>&1 &
while ! [ -s \"$HOME/port\" ]; do sleep 0.05; done
text=$(cat \"$HOME/port\"); work; finished";

#[test]
#[ignore = "a part of an agent of another test"]
fn an_agent_that_listens() {
    let Some(place) = std::env::var_os("PORT") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::fs::write(place, port).unwrap();
    for _ in listener.incoming() {}
}

#[test]
fn those_that_leave_something_behind_or_nothing() {
    let visit = visit(
        "limits: {max_retries: 1}\n",
        "",
        &[
            animal("forks twice", DAEMON, "finished", ""),
            animal(
                "leaves while a grandchild holds its pipes",
                "open; work; (setsid sleep 600 &); finished",
                "finished",
                "",
            ),
            animal(
                "the same without a word",
                "open; (setsid sleep 600 &)",
                "crashed",
                "it left without a word: exit code 0",
            ),
            animal("does nothing", "open; finished", "no_op", ""),
            animal(
                "fails after it has committed",
                "open; work; echo 'I give up' >&2; exit 1",
                "crashed",
                "exit code 1: I give up",
            ),
            animal(
                "removes its workspace",
                "open; work; place=$PWD; cd /; rm -rf \"$place\" 2>/dev/null; finished",
                "violated",
                "changes.",
            ),
            animal(
                "removes its repository",
                "open; work; rm -rf .git 2>/dev/null; finished",
                "violated",
                "changes.",
            ),
            animal("listens", LISTENS, "finished", ""),
        ],
    );
    let port: u16 = visit.stage.read("src/task-008.txt").trim().parse().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it still listens at {port}");
}

/// What programs must not say, or not so much of it.
const BABBLERS: [Animal; 7] = [
    animal(
        "says half of its result",
        "open; work; printf '{\"type\":\"result\",\"subtype\":\"succ'",
        "crashed",
        "it left without a result: exit code 0; unreadable was: {\\\"type\\\":\\\"result",
    ),
    animal(
        "has a result that is no text",
        "open; work; printf '{\"type\":\"result\",\"is_error\":false,\"result\":\"\\377\\376\"}\\n'",
        "crashed",
        "it left without a result: exit code 0; unreadable was:",
    ),
    animal(
        "speaks bytes that are no text",
        "open; work; head -c 100000 /dev/urandom; echo; finished",
        "finished",
        "",
    ),
    animal(
        "says a line of 50 MB",
        "open; work; head -c 50000000 /dev/zero | tr '\\0' x; echo; finished",
        "finished",
        "",
    ),
    animal(
        "floods its output",
        "open; work; line=$(printf 'x%.0s' {1..60000}); yes \"$line\" | head -c 1000000000; echo; finished",
        "finished",
        "",
    ),
    animal("says its result twice", "open; work; finished; finished", "violated", "a second result"),
    animal(
        "claims to have used what nobody can",
        "open; work
echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"stop_reason\":\"end_turn\",\"result\":\"done\",\"total_cost_usd\":-1e300,\"modelUsage\":{\"a\":{\"inputTokens\":18446744073709551615,\"outputTokens\":-5},\"b\":{\"inputTokens\":18446744073709551615,\"outputTokens\":1e300}}}'",
        "finished",
        "",
    ),
];

#[test]
fn those_that_say_what_makes_no_sense_or_too_much() {
    let visit = visit("limits: {max_retries: 1}\n", "", &BABBLERS);
    // What is kept of a flood has an end, and that is said.
    let flood = visit.sealed(&BABBLERS, "floods its output");
    let warnings = flood["warnings"].to_string();
    assert!(warnings.contains("bytes of output were not kept"), "{warnings}");
    // What it claims is nobody's bill: the gateway counts, and it saw nothing.
    let claims = visit.sealed(&BABBLERS, "claims to have used what nobody can");
    assert_eq!(claims["own_usage"]["input"], u64::MAX, "{claims}");
    for end in visit.stage.events("agent.exited") {
        let tokens = end["spend"]["usage"]["input"].as_u64().unwrap_or(0);
        assert!(tokens <= 900, "{end}");
    }
}

/// More than there is for one agent. The bombs are small enough for a machine
/// without limits, on which they would not go off: then they say so.
#[test]
fn those_that_take_more_than_there_is() {
    visit(
        "limits: {max_retries: 1}\n",
        "max_memory_mb: 256, max_disk_mb: 80, ",
        &[
            animal(
                "is a fork bomb",
                "open; for i in {1..1400}; do sleep 60 & done; echo 'it went off' >&2; exit 7",
                "crashed",
                "fork: ",
            ),
            animal(
                "is a memory bomb",
                "open; text=$(head -c 600000000 /dev/zero | tr '\\0' x); echo 'it went off' >&2; exit 7",
                "crashed",
                "cannot allocate",
            ),
            animal(
                "is many small memory bombs",
                "open
for i in {1..6}; do (text=$(head -c 70000000 /dev/zero | tr '\\0' x); sleep 20) & done
wait; echo 'it went off' >&2; exit 7",
                "crashed",
                "sandbox.max_memory_mb",
            ),
            animal(
                "fills the disk",
                "open
for i in {1..40}; do head -c 4000000 /dev/zero > \"$HOME/$i\"; sleep 0.1; done
echo 'it went off' >&2; exit 7",
                "crashed",
                "sandbox.max_disk_mb",
            ),
            animal(
                "writes one large file",
                "open; head -c 60000000 /dev/zero > \"$HOME/big\" || exit 5; echo 'it went off' >&2; exit 7",
                "crashed",
                "File size limit exceeded",
            ),
        ],
    );
}
