//! Objects of agents that mean harm: only what they are counts, and all of it is checked.

use super::hostile::Scene;
use super::*;

/// A list of commits as git writes it, in which the last commit has the files of the first.
const LYING_GRAPH: &str = r#"
import hashlib, os, subprocess
oid = lambda name: bytes.fromhex(subprocess.check_output(["git", "rev-parse", name]).decode().strip())
path = ".git/objects/info/commit-graph"
graph = bytearray(open(path, "rb").read()[:-20])
old, new = oid("HEAD^{tree}"), oid("HEAD~1^{tree}")
assert graph.count(old) == 1
at = graph.index(old)
graph[at:at + 20] = new
os.chmod(path, 0o644)
open(path, "wb").write(bytes(graph) + hashlib.sha1(graph).digest())
assert subprocess.check_output(["git", "log", "-1", "--format=%T"]).decode().strip() == new.hex()
"#;

/// A list of where objects are in a pack that leads git astray.
const LYING_ORDER: &str = r#"
import glob, hashlib, os
[path] = glob.glob(".git/objects/pack/*.rev")
data = bytearray(open(path, "rb").read()[:-20])
for at in range(12, len(data) - 20, 4): data[at:at + 4] = b"\x7f\xff\xff\xff"
os.chmod(path, 0o644)
open(path, "wb").write(bytes(data) + hashlib.sha1(data).digest())
"#;

/// Whatever is said of objects beside them is not what they are.
#[test]
fn what_is_said_of_objects_is_not_believed() {
    for (prepare, lie) in [
        ("git commit-graph write --reachable", LYING_GRAPH),
        ("git -c pack.writeReverseIndex=true repack -adlq", LYING_ORDER),
        ("git repack -adlbq", ""),
        ("git repack -adlq; git repack -dq; git multi-pack-index write", ""),
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        fs::write(env.path("lie.py"), lie).unwrap();
        let lie = env.path("lie.py");
        let work = "echo two > a; git commit -qam two";
        scene.agent(&format!("{work}; {prepare}; python3 '{}'", lie.display()));
        assert_eq!(scene.harvest().unwrap().commits, 1, "{prepare}");
        scene.repository.git(["fsck", "--strict"]);
    }
}

/// A pack whose list has another object under the name of the start. Whoever believes it
/// takes the files of that for files that are there already.
#[test]
fn a_pack_is_not_what_its_list_says() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent("echo two > a; git commit -qam two; git repack -adlq; chmod -R u+w .git");
    let lie = r#"
import glob, hashlib, subprocess
oid = lambda name: bytes.fromhex(subprocess.check_output(["git", "rev-parse", name]).decode().strip())
[path] = glob.glob(".git/objects/pack/*.idx")
index = open(path, "rb").read()
tip, start = oid("HEAD"), oid("HEAD~1")
assert index.count(tip) == 1
# Its place has to fit its name, so only one that begins with the same is swapped.
index = bytearray(index[:-20]); at = index.index(tip); index[at + 1:at + 20] = start[1:]
open(path, "wb").write(bytes(index) + hashlib.sha1(index).digest())
"#;
    fs::write(env.path("lie.py"), lie).unwrap();
    scene.agent(&format!("python3 '{}'", env.path("lie.py").display()));
    // Our own list of it has the commit.
    assert_eq!(scene.harvest().unwrap().commits, 1);
    scene.repository.git(["fsck", "--strict"]);
}

#[test]
fn what_is_not_all_there_does_not_come_in() {
    for lost in ["HEAD:a", "HEAD^{tree}", "HEAD~1", "HEAD~1:a", "HEAD"] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(&format!(
            "for text in two three; do echo $text > a; git commit -qam $text; done
             lost=$(git rev-parse {lost}); rm -f .git/objects/$(echo $lost | sed 's|^..|&/|')"
        ));
        let refused = scene.harvest().unwrap_err();
        assert!(matches!(refused, HarvestError::Refused { .. }), "{lost}: {refused}");
        let reference = scene.workspaces.attempt_ref(&scene.workspace.name);
        assert_eq!(scene.repository.git(["for-each-ref", &reference]), "", "{lost}");
        scene.repository.git(["fsck", "--strict"]);
    }
}

/// One that is there under the name of another would be taken for it.
#[test]
fn an_object_is_what_its_name_says() {
    let file = "file() { echo .git/objects/$(git rev-parse $1 | sed 's|^..|&/|'); }";
    let other = "other=$(git commit-tree -p HEAD -m other HEAD^{tree})";
    for script in [
        "cp $(file $(echo other | git hash-object -w --stdin)) $(file HEAD:a)",
        &format!("{other}; cp $(file $other) $(file HEAD)"),
        &format!(
            "git checkout -q -b side; git commit -q --allow-empty -m side; {other}
                  cp $(file $other) $(file HEAD); git checkout -qf -"
        ),
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let work = "echo two > a; git commit -qam two; chmod -R u+w .git";
        scene.agent(&format!("{file}\n{work}\n{script}"));
        let refused = scene.harvest().unwrap_err();
        assert!(refused.is_the_agents(), "{script}: {refused}");
    }
}

/// Two packed objects that are each told by the other: nobody can say what they are.
#[test]
fn objects_that_need_each_other_are_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let pack = r#"
import hashlib, os, struct, zlib
a, b = b"\x11" * 20, b"\x22" * 20
delta = zlib.compress(b"\x04\x04\x90\x04")
data = b"PACK" + struct.pack(">II", 2, 2) + b"".join(b"\x74" + base + delta for base in (a, b))
os.makedirs(".git/objects/pack", exist_ok=True)
open(".git/objects/pack/pack-x.pack", "wb").write(data + hashlib.sha1(data).digest())
"#;
    fs::write(env.path("pack.py"), pack).unwrap();
    let work = "echo two > a; git commit -qam two";
    scene.agent(&format!("{work}; python3 '{}'", env.path("pack.py").display()));
    let refused = scene.harvest().unwrap_err();
    assert!(matches!(refused, HarvestError::Refused { .. }), "{refused}");
}

#[test]
fn packs_beyond_number_are_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        "echo two > a; git commit -qam two; mkdir -p .git/objects/pack
         for n in $(seq 51); do : > .git/objects/pack/pack-$n.pack; done",
    );
    let refused = scene.harvest().unwrap_err();
    assert!(refused.is_the_agents(), "{refused}");
    assert!(refused.to_string().contains("more than 50 packs"), "{refused}");
}

/// What the agent says is in git's own words.
#[test]
fn an_agent_does_not_speak_for_the_machine() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let objects = || scene.repository.git(["count-objects", "-v"]);
    let before = objects();
    scene.agent(
        "git config -f .gitmodules submodule.x.path x
         git config -f .gitmodules submodule.x.url '-x: No space left on device'
         git add .gitmodules; git commit -qm modules",
    );
    let refused = scene.harvest().unwrap_err();
    assert!(refused.to_string().contains("No space left on device"), "{refused}");
    assert!(refused.is_the_agents(), "{refused}");
    // Nothing of what was refused is there for another to refer to.
    let unfinished =
        |line: &&str| !line.starts_with("garbage") && !line.starts_with("size-garbage");
    let readable = |text: &str| text.lines().filter(unfinished).collect::<Vec<_>>().join("\n");
    assert_eq!(readable(&objects()), readable(&before));
}

/// Not even for a git that follows it to its end.
#[test]
fn a_long_history_that_the_person_has_elsewhere_stops_nobody() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let stream: String = (0..60_000).fold(String::new(), |text, number| {
        text + &format!(
            "commit refs/heads/long\ncommitter A <a@b> {} +0000\ndata 1\nx\n",
            1_000_000_000 + number
        )
    });
    let file = env.path("stream");
    fs::write(&file, stream).unwrap();
    let mut import = env.command("git");
    import.args(["fast-import", "--quiet"]).current_dir(scene.repository.path());
    import.stdin(fs::File::open(&file).unwrap());
    assert!(import.status().unwrap().success());
    let tip = scene.repository.git(["rev-parse", "long"]);
    scene.agent(&format!("git reset -q --hard {}", tip.trim()));
    let refused = scene.harvest().unwrap_err();
    assert!(refused.is_the_agents(), "{refused}");
}
