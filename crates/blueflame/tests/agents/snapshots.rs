//! Unfinished work is saved, and nothing that an agent planted is run for it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use blueflame::attempt::last_snapshot;
use blueflame::attempt::messages::Report;
use blueflame_core::ids::Oid;

use crate::lifecycle::acted_by;
use crate::stage::{BLUEFLAME, Run, Stage};

#[test]
fn unfinished_work_is_saved_on_the_way_and_at_the_end() {
    let script = "
mkdir -p src target
echo one > src/work.txt
echo junk > target/junk
until [ -e src/go ]; do sleep 0.05; done
echo two > src/work.txt
exit 1";
    let stage = acted_by(script).with(|spec| {
        let snapshots = spec.snapshots.as_mut().unwrap();
        snapshots.every = Duration::from_millis(100);
        snapshots.exclude = vec![blueflame_core::lock_path::LockPath::new("target").unwrap()];
    });
    // What an agent may have planted in its git directory must not run.
    let planted = stage.env.path("planted");
    let planted_command = format!("touch {}", planted.display());
    for (key, value) in [("core.fsmonitor", planted_command.as_str()), ("core.hooksPath", "hooks")]
    {
        let mut git = stage.env.command("git");
        assert!(
            git.current_dir(&stage.workspace)
                .args(["config", key, value])
                .status()
                .unwrap()
                .success()
        );
    }
    let workspace = stage.workspace.clone();
    let run = stage.run_with(|report| {
        if matches!(report, Report::Snapshot { .. }) {
            fs::write(workspace.join("src/go"), "").unwrap();
        }
        None
    });
    assert!(run.sealed.warnings.is_empty(), "{}", run.story());
    let last = run.sealed.snapshot.clone().unwrap();
    let show = |name: &str| {
        let mut git = run.stage.env.command("git");
        let object = format!("{last}:{name}");
        git.env("GIT_DIR", run.stage.directory().root().join("snapshots.git"));
        let output = git.args(["show", &object]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(show("src/work.txt"), "two\n");
    assert_eq!(show("README.md"), "A project.\n");
    assert_eq!(show("target/junk"), "", "build output is not saved");
    let count = run.reports.iter().filter(|it| matches!(it, Report::Snapshot { .. })).count();
    assert!(count >= 2, "{}", run.story());
    assert!(!planted.exists(), "the agent's git configuration was executed");
}

#[test]
fn what_is_changed_after_the_last_snapshot_can_be_saved_when_the_attempt_is_over() {
    let run = acted_by("mkdir -p src; echo one > src/work.txt; exit 1").run();
    let first = last(&run);
    let directory = run.stage.directory();
    let save = || last_snapshot::save(Path::new(BLUEFLAME), &directory).unwrap();
    let saved = save();
    assert_eq!(saved.snapshot.as_ref(), Some(&first), "nothing has changed");
    fs::write(run.stage.workspace.join("src/work.txt"), "two\n").unwrap();
    run.git(&["init", "-q", "nested"]);
    let saved = save();
    assert!(saved.remarks.iter().any(|it| it.contains("`nested`")), "{saved:?}");
    let second = saved.snapshot.unwrap();
    assert_eq!(of_snapshot(&run, &["show", &format!("{second}:src/work.txt")]), "two\n");
    assert_eq!(
        of_snapshot(&run, &["rev-parse", "refs/blueflame/snapshot"]).trim(),
        second.as_str()
    );
    // Changed back, it is not what the last one has.
    fs::remove_dir_all(run.stage.workspace.join("src")).unwrap();
    let third = save().snapshot.unwrap();
    assert_eq!(of_snapshot(&run, &["ls-tree", "--name-only", third.as_str()]), "README.md\n");
    // Whoever still has the attempt is waited for.
    let held = directory.take_up().unwrap();
    let waiting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        drop(held);
    });
    assert_eq!(save().snapshot, Some(third));
    waiting.join().unwrap();
}

#[test]
fn what_the_start_has_and_cannot_be_taken_up_is_kept_as_it_was_last() {
    let run = acted_by("exit 1").run();
    let directory = run.stage.directory();
    let grown = run.stage.workspace.join("README.md");
    fs::write(&grown, "one\n").unwrap();
    last_snapshot::save(Path::new(BLUEFLAME), &directory).unwrap();
    fs::File::options().write(true).open(&grown).unwrap().set_len(60 << 20).unwrap();
    fs::write(run.stage.workspace.join("more"), "more\n").unwrap();
    let saved = last_snapshot::save(Path::new(BLUEFLAME), &directory).unwrap();
    assert!(saved.remarks.iter().any(|it| it.contains("README.md")), "{saved:?}");
    let show = |name: &str| {
        let object = format!("{}:{name}", saved.snapshot.as_ref().unwrap());
        of_snapshot(&run, &["show", &object])
    };
    assert_eq!((show("README.md").as_str(), show("more").as_str()), ("one\n", "more\n"));
}

#[test]
fn what_was_left_half_made_is_made_again() {
    let run = acted_by("mkdir -p src; echo one > src/work.txt; exit 1").run();
    let directory = run.stage.directory();
    let git_dir = directory.snapshots();
    let spoilers: [&dyn Fn(); 4] = [
        // Cut short while it was made.
        &|| {
            fs::remove_dir_all(&git_dir).unwrap();
            fs::create_dir(&git_dir).unwrap();
            fs::write(git_dir.join("config.lock"), "").unwrap();
        },
        // Cut short while it was used.
        &|| {
            fs::write(git_dir.join("index.lock"), "").unwrap();
            fs::write(git_dir.join("refs/blueflame/snapshot.lock"), "").unwrap();
        },
        // The power went before it was on the disk.
        &|| fs::write(git_dir.join("refs/blueflame/snapshot"), "").unwrap(),
        &|| fs::write(git_dir.join("refs/blueflame/snapshot"), "1".repeat(40)).unwrap(),
    ];
    for (number, spoil) in spoilers.iter().enumerate() {
        spoil();
        let text = format!("{number}\n");
        fs::write(run.stage.workspace.join("src/work.txt"), &text).unwrap();
        let saved = last_snapshot::save(Path::new(BLUEFLAME), &directory).unwrap();
        let object = format!("{}:src/work.txt", saved.snapshot.unwrap());
        assert_eq!(of_snapshot(&run, &["show", &object]), text);
    }
    // What could not be read is put aside, and if it cannot be, that is said.
    assert!(git_dir.with_extension("broken").join("HEAD").exists());
    fs::remove_dir_all(git_dir.with_extension("broken")).unwrap();
    fs::write(git_dir.with_extension("broken"), "").unwrap();
    spoilers[3]();
    let error = last_snapshot::save(Path::new(BLUEFLAME), &directory).unwrap_err();
    assert!(error.to_string().contains("cannot prepare snapshots"), "{error}");
}

/// A stage whose agent waits for its first snapshot before it does the rest.
fn twice(first: &str, then: &str) -> Stage {
    let script = format!(
        "{first}\necho one > src/work.txt\nuntil [ -e src/go ]; do sleep 0.05; done\n{then}\necho two > src/work.txt\nexit 1"
    );
    acted_by(&format!("mkdir -p src\n{script}")).with(|spec| {
        spec.snapshots.as_mut().unwrap().every = Duration::from_millis(100);
    })
}

fn run(stage: Stage) -> Run {
    let workspace = stage.workspace.clone();
    stage.run_with(|report| {
        if matches!(report, Report::Snapshot { .. }) {
            fs::write(workspace.join("src/go"), "").unwrap();
        }
        None
    })
}

/// What git says about the last snapshot.
fn of_snapshot(run: &Run, arguments: &[&str]) -> String {
    let mut git = run.stage.env.command("git");
    git.env("GIT_DIR", run.stage.directory().snapshots());
    let output = git.args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn last(run: &Run) -> Oid {
    run.sealed.snapshot.clone().unwrap_or_else(|| panic!("no snapshot: {}", run.story()))
}

/// Shell lines that make a repository in `place` which runs `planted` whenever
/// git looks into it.
fn trap(place: &str, planted: &str) -> String {
    format!(
        "git init -q {place}
echo '* filter=evil' > {place}/.gitattributes
echo x > {place}/file
git -C {place} add . && git -C {place} commit -q -m x
git -C {place} config core.fsmonitor 'touch {planted}; false'
git -C {place} config filter.evil.clean 'touch {planted}; cat'
echo y > {place}/file"
    )
}

#[test]
fn a_repository_inside_the_workspace_is_never_looked_into() {
    let probe = acted_by("");
    let planted = probe.env.path("planted");
    let planted_text = planted.display().to_string();
    let first = format!(
        "{}\nmkdir outside\n{}\nln -s ../outside src/link\necho '* filter=evil' > .gitattributes",
        trap("src/nested", &planted_text),
        trap("outside/deep", &planted_text),
    );
    // Made between the two, and one more that has no commit.
    let then = format!("{}\ngit init -q src/empty", trap("src/later", &planted_text));
    let run = run(twice(&first, &then));
    assert!(!planted.exists(), "what an agent planted was run");
    assert_eq!(of_snapshot(&run, &["show", &format!("{}:src/work.txt", last(&run))]), "two\n");
    let listed = of_snapshot(&run, &["ls-tree", "-r", last(&run).as_str()]);
    assert!(!listed.contains("160000") && !listed.contains("nested"), "{listed}");
    let told = |name: &str| {
        let of_it = |it: &&String| it.contains(name) && it.contains("repository of its own");
        run.sealed.warnings.iter().filter(of_it).count()
    };
    for name in ["`src/nested`", "`src/later`", "`src/empty`", "`outside/deep`"] {
        assert_eq!(told(name), 1, "{name}: {}", run.story());
    }
    // The trap does snap when git looks.
    run.git(&["-C", "src/nested", "status"]);
    assert!(planted.exists(), "there was nothing to be run");
}

#[test]
fn submodules_stay_as_they_were_and_are_not_looked_into() {
    let mut stage = twice("", "");
    let planted = stage.env.path("planted");
    let made = stage
        .env
        .command("sh")
        .current_dir(&stage.workspace)
        .arg("-c")
        .arg(format!(
            "set -e
{}
{}
git add src/module vendor/module && git commit -q -m modules && git rev-parse HEAD",
            trap("src/module", &planted.display().to_string()),
            trap("vendor/module", &planted.display().to_string()),
        ))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let start = String::from_utf8(made.stdout).unwrap();
    stage.spec.start = Oid::new(start.lines().last().unwrap()).unwrap();
    // Where nobody looks for repositories, git must not find one either.
    let exclude = &mut stage.spec.snapshots.as_mut().unwrap().exclude;
    exclude.push(blueflame_core::lock_path::LockPath::new("vendor").unwrap());
    let _ = fs::remove_file(&planted);
    let run = run(stage);
    assert!(!planted.exists(), "what was planted in the submodule was run");
    let last = last(&run);
    let changed =
        of_snapshot(&run, &["diff-tree", "-r", "--name-only", start.trim(), last.as_str()]);
    assert_eq!(changed, "src/go\nsrc/work.txt\n", "the submodule is no change");
}

/// A file may grow while the others are being saved.
#[test]
fn what_has_become_too_large_is_not_saved_any_longer() {
    let run = run(twice("echo x > src/growing", "truncate -s 60M src/growing; sleep 0.3"));
    let listed = of_snapshot(&run, &["ls-tree", "-r", "--name-only", last(&run).as_str()]);
    assert!(listed.contains("src/work.txt") && !listed.contains("growing"), "{listed}");
}

#[test]
fn what_cannot_be_saved_does_not_keep_the_rest_from_being_saved() {
    // git takes no file of this name, and this is too large.
    let first = "echo x > 'git~1'; truncate -s 60M src/large; truncate -s 60M src/ignored
echo ignored > src/.gitignore";
    let run = run(twice(first, ""));
    assert_eq!(of_snapshot(&run, &["show", &format!("{}:src/work.txt", last(&run))]), "two\n");
    let listed = of_snapshot(&run, &["ls-tree", "-r", "--name-only", last(&run).as_str()]);
    assert!(!listed.contains("large") && !listed.contains("git~1"), "{listed}");
    let warnings = &run.sealed.warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.iter().any(|it| it.contains("`src/large` is larger than 50 MiB")));
    assert!(warnings.iter().any(|it| it.contains("git~1")), "{warnings:?}");
}
