//! Ordinary work goes on as if there were no sandbox.

use std::process::Command;

use crate::cage::{Cage, everything};

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
}

/// A program that has to be there, and what must work with it.
const WORK: [(&str, &str, &str); 11] = [
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
        "npm and the tests of node",
        "npm",
        "printf '{\"scripts\":{\"test\":\"node --test\"}}' > package.json && printf 'require(\"node:test\")(\"t\", () => {})' > a.test.js && npm test --silent",
    ),
];

#[test]
fn compilers_servers_and_test_runners_work() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (what, program, command) in WORK {
        if !is_installed(program) {
            continue;
        }
        tried += 1;
        let mut cage = Cage::new();
        let config = blueflame_core::config::read(b"schema_version: 2\n").config.unwrap();
        cage.terms.limits = blueflame::sandbox::Limits::of_agents(&config.sandbox);
        let outcome = cage.run(everything(), command);
        if !outcome.worked() {
            wrong.push(format!("{what}: {outcome:?}"));
        }
    }
    assert!(tried >= 3, "hardly anything is installed here");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
