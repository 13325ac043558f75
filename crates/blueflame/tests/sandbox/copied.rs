//! Workspaces as copies of one checkout, on a real btrfs in a file, which is mounted
//! for this test alone.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use blueflame::sandbox::Tier;
use blueflame::workspace::{Layers, Making};
use blueflame_core::config;

use crate::cage::BLUEFLAME;
use crate::layered::{SMALL, Scene, come_out_apart, find_what_is_not_committed};

/// Where the parts of the test that run on it find it.
const PLACE: &str = "BLUEFLAME_TEST_BTRFS";

/// Mounts it at the first argument in a namespace of its own, gives it to a user and
/// goes on as that user with the rest.
const ON_BTRFS: &str = r#"
set -e
place=$1 user=$2; shift 2
truncate -s 600M "$place/image"
mkdir "$place/mounted"
mkfs.btrfs -q "$place/image" && mount -o loop "$place/image" "$place/mounted" || exit 77
chown "$user:$user" "$place/mounted"
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"#;

#[test]
fn agents_on_copies_of_one_checkout_do_not_meet() {
    // Root may remove a copy in one step; others have to empty it first.
    for user in ["0", "65533"] {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ON_BTRFS, "sh"]).arg(dir.path()).arg(user);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "copied::on_btrfs", "--ignored", "--nocapture"]);
        command.env(PLACE, dir.path().join("mounted")).env("TMPDIR", dir.path().join("mounted"));
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !rustix::process::geteuid().is_root() || output.status.code() == Some(77) {
            eprintln!("SKIPPED copied: there can be no btrfs here: {complaint}");
            return;
        }
        assert!(output.status.success(), "as user {user}: {told}\n{complaint}");
        assert!(told.contains("1 passed"), "as user {user}: {told}");
    }
}

#[test]
#[ignore = "started by the test above, on a btrfs"]
fn on_btrfs() {
    let place = std::env::var_os(PLACE).expect("the other test starts this one");
    let (config, _) =
        config::read(b"schema_version: 2\nworktree:\n  layers: false\n").into_result().unwrap();
    let place = Path::new(&place);
    let chosen =
        Making::choose(&config.worktree, Tier::Namespaces, Path::new(BLUEFLAME), place, place);
    assert_eq!(chosen.making, Making::Copies);
    assert_eq!(
        chosen.to_string(),
        "copies of one checkout (btrfs): tried, and works; no layers, because \
         `worktree.layers` is off"
    );
    assert_eq!(fs::read_dir(place).unwrap().count(), 0, "the trial left something");

    let scene = Scene::made_by(SMALL, Making::Copies);
    let (one, other) = (scene.create("task-001"), scene.create("task-002"));
    for workspace in [&one, &other] {
        assert_eq!(Layers::of(&workspace.path), None);
        let root = fs::metadata(&workspace.path).unwrap();
        assert_eq!(root.ino(), 256, "it is an ordinary directory");
    }
    come_out_apart(&scene, &one, &other);

    // A start that is close is copied from the same checkout, and then brought up.
    let later = scene.commit("b", "2\n");
    let third = scene.create("task-003");
    assert_eq!(scene.bases().len(), 1);
    let seen = scene.agent(&third, "cat b; git status --porcelain; git rev-parse HEAD");
    assert_eq!(seen, format!("2\n{later}\n"));

    for workspace in [&one, &other, &third] {
        scene.workspaces.remove(workspace).unwrap();
        assert!(!workspace.path.exists());
    }
    scene.workspaces.remove_unused_bases().unwrap();
    assert_eq!(scene.bases(), [""; 0]);
    find_what_is_not_committed(Making::Copies);
}
