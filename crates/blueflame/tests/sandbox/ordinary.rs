//! Ordinary work goes on as if there were no sandbox.

use std::path::Path;
use std::process::Command;

use blueflame::sandbox::{Limits, Tier};
use blueflame_core::config::ProcessLimit;

use crate::cage::{Cage, everything};

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
}

/// A program that has to be there, and what must work with it.
const WORK: [(&str, &str, &str); 16] = [
    (
        "git",
        "git",
        "git checkout -qb x && echo y > f && git add f && git commit -qm y && git rebase -q master 2>/dev/null || git log -1 --format=%s",
    ),
    (
        "a shell with pipes and temporary files",
        "bash",
        "f=$(mktemp) && seq 100000 | sort -R | sort -n | tail -1 > $f && grep -q 100000 $f && echo x > /tmp/y && cat <(echo z)",
    ),
    ("C", "cc", "printf 'int main(void){return 0;}' > t.c && cc -O1 -g -o t t.c && ./t"),
    (
        "make",
        "make",
        "printf 'all: a b\\na b:\\n\\t@echo $@ > $@\\n' > Makefile && make -j4 && cat a b",
    ),
    (
        "Rust",
        "rustc",
        "printf '#[test] fn t() { std::thread::spawn(|| ()).join().unwrap() }' > t.rs && rustc --test -o t t.rs && ./t",
    ),
    ("cargo", "cargo", "cargo init -q --vcs none --name x . && cargo test -q --offline"),
    (
        "Python with several processes",
        "python3",
        "python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\":\n    print(sum(m.Pool(3).map(abs, range(9))), m.Manager().list([1]))'",
    ),
    (
        "Python with a server of its own",
        "python3",
        "python3 -c 'import http.server, threading, urllib.request\ns = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever, daemon=True).start()\nurllib.request.urlopen(f\"http://127.0.0.1:{s.server_port}/\").read()'",
    ),
    (
        "Python with sockets, a database and a terminal",
        "python3",
        "python3 -c 'import socket, sqlite3, pty, os\ns = socket.socket(socket.AF_UNIX); s.bind(\"/tmp/s\"); s.listen()\nsocket.socket(socket.AF_UNIX).connect(\"/tmp/s\")\nd = sqlite3.connect(\"x.db\"); d.execute(\"pragma journal_mode=wal\"); d.execute(\"create table t(a)\"); d.commit()\npty.openpty()'",
    ),
    (
        "Node with a server, workers and children",
        "node",
        "node -e 'const h=require(\"http\"),{Worker}=require(\"worker_threads\"),c=require(\"child_process\");c.execSync(\"true\");require(\"os\").userInfo();new Worker(\"\",{eval:true}).on(\"exit\",()=>{const s=h.createServer((q,r)=>r.end()).listen(0,\"127.0.0.1\",()=>h.get(s.address(),r=>{r.resume();s.close()}))})'",
    ),
    (
        "the tests of Python",
        "python3",
        "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_it(self):\\n        self.assertEqual(1, 1)\\n' > test_it.py && python3 -m unittest -q",
    ),
    (
        "Python with a database and a socket in the workspace",
        "python3",
        "python3 -c 'import socket, sqlite3\ns = socket.socket(socket.AF_UNIX); s.bind(\"own.sock\"); s.listen()\nsocket.socket(socket.AF_UNIX).connect(\"own.sock\")\nd = sqlite3.connect(\"x.db\"); d.execute(\"pragma journal_mode=wal\"); d.execute(\"create table t(a)\"); d.commit()'",
    ),
    (
        "Java",
        "javac",
        "printf 'class A { public static void main(String[] a) { System.out.println(java.security.Security.getProviders().length); } }' > A.java && javac A.java && java A",
    ),
    (
        "Node with a server on all addresses, reached at one",
        "node",
        "node -e 'const h=require(\"http\");const s=h.createServer((q,r)=>r.end()).listen(0,()=>h.get({host:\"127.0.0.1\",port:s.address().port},r=>{r.resume();s.close()}))'",
    ),
    (
        "make, a library and its test",
        "make",
        "printf 'int twice(int x){return 2*x;}' > l.c && printf 'int twice(int);int main(void){return twice(2)!=4;}' > t.c && printf 'test: t\\n\\t./t\\nt: l.o t.o\\n\\tcc -o t l.o t.o\\n' > Makefile && make -j2 test",
    ),
    (
        "npm and the tests of node",
        "npm",
        "printf '{\"scripts\":{\"test\":\"node --test\"}}' > package.json && printf 'require(\"node:test\")(\"t\", () => {})' > a.test.js && npm test --silent",
    ),
];

/// What the weaker tier has not: sockets and files in `/tmp`, shared memory,
/// terminals of its own.
const NOT_BY_LANDLOCK: [&str; 3] = [
    "a shell with pipes and temporary files",
    "Python with several processes",
    "Python with sockets, a database and a terminal",
];

#[test]
fn compilers_servers_and_test_runners_work() {
    work_goes_on_in(Tier::Namespaces);
}

#[test]
fn and_so_they_do_in_the_weaker_tier() {
    work_goes_on_in(Tier::Landlock);
}

fn work_goes_on_in(tier: Tier) {
    let mut wrong = Vec::new();
    let (mut tried, mut by_user) = (0, 0);
    let config = blueflame_core::config::read(b"schema_version: 2\n").config.unwrap();
    for (what, program, command) in WORK {
        if !is_installed(program) || (tier == Tier::Landlock && NOT_BY_LANDLOCK.contains(&what)) {
            continue;
        }
        tried += 1;
        for (who, cage) in [("this user", Some(Cage::new())), ("other", Cage::of_ordinary_user())] {
            let Some(cage) = cage else { continue };
            // What is installed in root's home is not theirs.
            if who == "other" && !is_installed_for_all(program) {
                continue;
            }
            by_user += usize::from(who == "other");
            let mut cage = cage.in_tier(tier);
            cage.terms.limits = Limits::of_agents(&config.sandbox, ProcessLimit::Kernel);
            let outcome = cage.run(everything(), command);
            if !outcome.worked() {
                wrong.push(format!("{what}, {who}: {outcome:?}"));
            }
        }
    }
    assert!(tried >= 3, "hardly anything is installed here");
    assert!(by_user >= 3 || Cage::of_ordinary_user().is_none(), "only {by_user} by another user");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_installed_for_all(program: &str) -> bool {
    ["/usr/bin", "/usr/local/bin"].iter().any(|place| Path::new(place).join(program).exists())
}
