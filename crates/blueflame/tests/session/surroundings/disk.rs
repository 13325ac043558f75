//! A disk that fills up during a session: a file system of its own, in a mount
//! namespace, that is made smaller and larger again.

use crate::stage::{BLUEFLAME, Stage};

/// Runs a session on a small disk. `$1` is the directory of the stage, `$2` the
/// program; the lines between decide what happens to the disk.
fn on_a_small_disk(stage: &Stage, before: &str, during: &str) -> Vec<String> {
    let script = format!(
        r#"set -e
disk="$1/disk"
mkdir "$disk"
mount -t tmpfs -o size=1g tmpfs "$disk"
cp -a "$1/project" "$disk/project"
cp "$1/plan.yaml" "$1/script.yaml" "$1/decisions.yaml" "$disk/"
cd "$disk/project"
used() {{ df --output=used -k "$disk" | tail -1; }}
size() {{ mount -o "remount,size=$1" "$disk"; }}
events() {{ cat .git/blueflame/sessions/*/journal.jsonl 2>/dev/null | grep -c "\"t\":\"$1\"" || true; }}
{before}
"$2" run --task Do. --plan ../plan.yaml --decisions-file ../decisions.yaml >/dev/null 2>"$1/first" &
{during}
code=0; wait $! || code=$?
echo "run $code"
git log --format=%s main | head -1
size 1g
code=0; "$2" resume --decisions-file ../decisions.yaml >/dev/null 2>"$1/second" || code=$?
echo "resume $code"
git log --reverse --format=%s main
git status --porcelain
find .trees -mindepth 1 2>/dev/null || true
code=0; "$2" replay >/dev/null 2>&1 || code=$?
echo "replay $code"
"#
    );
    let mut command = stage.env.command("unshare");
    command.args(["-rm", "sh", "-c", &script, "sh"]).arg(stage.env.root()).arg(BLUEFLAME);
    let ran = stage.env.run(command);
    let said = |name: &str| std::fs::read_to_string(stage.env.path(name)).unwrap_or_default();
    assert!(ran.status.success(), "{ran}\n{}\n{}", said("first"), said("second"));
    ran.stdout.lines().map(str::to_owned).collect()
}

const LANDED: [&str; 5] = [
    "resume 0",
    "chore: a small project",
    "feat(task-001): write it",
    "feat(task-002): write it",
    "replay 0",
];

#[test]
fn too_little_room_for_workspaces_stops_the_session_until_there_is_room() {
    let stage = super::with(crate::script::Script::new(), "limits: {max_retries: 0}\n");
    let told = on_a_small_disk(&stage, "size 300m", "");
    assert_eq!(told[..2], ["run 3", "chore: a small project"], "{told:?}");
    assert_eq!(told[2..], LANDED);
    let said = std::fs::read_to_string(stage.env.path("first")).unwrap();
    assert!(said.contains("not enough room for a workspace"), "{said}");
    assert!(said.contains("once that is put right, `blueflame resume"), "{said}");
}

#[test]
fn a_disk_that_is_full_to_the_last_block_loses_nothing() {
    let stage = super::waiting("limits: {max_retries: 0}\n");
    let fill = "while test $(events agent.usage) -lt 2; do sleep 0.05; done\n\
                size $(used)k\n\
                touch \"$1/signals/go\"";
    let told = on_a_small_disk(&stage, "", fill);
    assert!(["run 3", "run 70"].contains(&told[0].as_str()), "{told:?}");
    assert_eq!(told[1], "chore: a small project");
    assert_eq!(told[2..], LANDED);
    let said = std::fs::read_to_string(stage.env.path("first")).unwrap();
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("blueflame resume"), "{said}");
}

/// Fills 640 MB, in files of a size that anybody may write, and removes them.
const TAKES_ROOM: &str = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do \
     head -c 40M /dev/zero > full.$i || exit 1; done; rm full.*";

/// What needs room finds too little of it, while there is enough for everything else:
/// none of the tasks, which may not fail once, pays for it.
fn nobody_pays_for(more: &str, small: &str) {
    let config = format!("limits: {{max_retries: 0}}\n{more}");
    let stage = super::with(crate::script::Script::new(), &config);
    let place = stage.env.path(small);
    std::fs::create_dir_all(&place).unwrap();
    let lines = format!("mount -t tmpfs -o size=600m tmpfs '{}'", place.display());
    let wrapper = super::in_a_namespace(&lines);
    let told = stage.start_under(&wrapper, &stage.run_arguments()).end().exits(3);
    let told = told.says("failed with exit code 1, and the disk of").says("is full: ");
    told.says("once that is put right, `blueflame resume");
    assert_eq!(stage.landed(), Vec::<String>::new());
    stage.resume().exits(0);
    super::everything_landed(&stage);
}

#[test]
fn a_disk_that_is_full_for_a_command_costs_no_task_a_retry() {
    let command = serde_json::to_string(&[TAKES_ROOM]).unwrap();
    let cases = [
        ("worktree: {prepare", "project/.trees"),
        ("validation: {acceptance", "tmp"),
        ("merge: {verify", "tmp"),
    ];
    for (key, small) in cases {
        nobody_pays_for(&format!("{key}: {command}}}\n"), small);
    }
}
