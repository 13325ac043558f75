//! A zoo of agents that misbehave, each in a whole session: it ends as a named
//! outcome, what the rules say follows, and nobody else is disturbed.

mod cage;

use cage::{Animal, visit};

#[test]
fn those_that_do_not_come_to_an_end() {
    visit(
        "limits: {agent_timeout: 10s, max_retries: 1}\n",
        "",
        &[
            Animal {
                name: "sleeps past its time",
                acts: "open; sleep 600",
                ends: "timed_out",
                says: "",
            },
            Animal {
                name: "ignores every request to stop",
                acts: "trap '' TERM INT HUP; open; while :; do sleep 1; done",
                ends: "timed_out",
                says: "",
            },
            Animal {
                name: "never reads what it is told",
                acts: "exec sleep 600",
                ends: "timed_out",
                says: "",
            },
            Animal {
                name: "stops itself",
                acts: "open; kill -STOP $$; sleep 600",
                ends: "timed_out",
                says: "",
            },
            Animal {
                name: "closes its output and runs on",
                acts: "open; exec >&- 2>&-; sleep 600",
                ends: "timed_out",
                says: "",
            },
            Animal {
                name: "is busy for ever",
                acts: "open; while :; do echo '{\"type\":\"assistant\"}'; sleep 0.1; done",
                ends: "timed_out",
                says: "",
            },
        ],
    );
}

#[test]
fn those_that_leave_something_behind() {
    visit(
        "limits: {max_retries: 1}\n",
        "",
        &[
            Animal {
                name: "forks twice into a session of its own",
                acts: "open; work
(setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &)
finished",
                ends: "finished",
                says: "",
            },
            Animal {
                name: "leaves while a grandchild holds its pipes",
                acts: "open; work; (setsid sleep 600 &); finished",
                ends: "finished",
                says: "",
            },
            Animal {
                name: "leaves without a word and a grandchild holds its pipes",
                acts: "open; (setsid sleep 600 &)",
                ends: "crashed",
                says: "it left without a word: exit code 0",
            },
            Animal {
                name: "removes its workspace",
                acts: "open; work; place=$PWD; cd /; rm -rf \"$place\"; finished",
                ends: "violated",
                says: "",
            },
            Animal {
                name: "removes the repository of its workspace",
                acts: "open; work; rm -rf .git; finished",
                ends: "violated",
                says: "",
            },
        ],
    );
}
