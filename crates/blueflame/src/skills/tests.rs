//! Skills on a real disk: where they are found, and what is refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use blueflame_core::config;
use tempfile::TempDir;

use super::*;

struct Machine {
    root: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("project")).unwrap();
        Machine { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A skill in a place; its description says where.
    fn skill(&self, place: &str, name: &str) -> PathBuf {
        let folder = self.path(place).join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: in {place}\n---\nBody\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
        folder
    }

    fn look(&self, yaml: &str) -> Skills {
        let config = format!("schema_version: 2\n{yaml}");
        let config = config::read(config.as_bytes()).config.unwrap();
        let (claude, codex) = (self.path("home/.claude"), self.path("home/.codex"));
        let person = Person { home: self.path("home"), claude, codex };
        look(&config, &self.path("project"), &person, true)
    }
}

fn given(skills: &Skills) -> Vec<String> {
    let words = |it: &Given| format!("{} {} {:?}", it.skill.name, it.skill.description, it.roles);
    skills.given.iter().map(words).collect()
}

const MINE: &str = "skills: {worker: [mine]}\n";

#[test]
fn all_places_are_looked_at_and_the_first_counts() {
    let machine = Machine::new();
    assert_eq!(machine.look("").page(), "none: agents work without");
    let plugin = "home/.claude/plugins/cache/market/superpowers/6.2.0/skills";
    machine.skill(plugin, "test-driven-development");
    machine.skill(plugin, "using-git-worktrees");
    machine.skill(plugin, "mine");
    for place in ["home/.codex/skills", "home/.agents/skills", "home/.claude/skills", "extra"] {
        assert!(given(&machine.look(MINE)).iter().all(|it| !it.contains(&format!("in {place}"))));
        machine.skill(place, "mine");
        let yaml = format!(
            "skills: {{worker: [mine], folders: ['{}']}}\n",
            machine.path("extra").display()
        );
        let found = machine.look(&yaml);
        let expected = format!("mine in {place} [Worker]");
        assert!(given(&found).contains(&expected), "{place}: {:?}", given(&found));
    }
    let page = machine.look(MINE).page();
    for said in [
        "mine for worker, from ~/.claude/skills",
        "test-driven-development for worker, from Superpowers 6.2.0",
        "left out: mine from ~/.codex/skills: the one in ~/.claude/skills comes first",
        "left out: using-git-worktrees from Superpowers 6.2.0: it has agents manage branches",
    ] {
        assert!(page.contains(said), "{page}");
    }
}

#[test]
fn what_the_repository_brings_along_is_not_trusted_unless_that_is_said() {
    let machine = Machine::new();
    machine.skill("project/.claude/skills", "mine");
    let found = machine.look(MINE);
    assert_eq!(given(&found), Vec::<String>::new());
    assert!(found.complaints(&config(MINE))[0].contains("`mine` is not there"));
    let trusted = "skills: {worker: [mine], trust_repository: true}\n";
    assert_eq!(given(&machine.look(trusted)).len(), 1);
    // It comes last, and shows nothing from outside of it.
    machine.skill("home/.agents/skills", "mine");
    assert!(given(&machine.look(trusted))[0].contains("in home/.agents/skills"));
    machine.skill("home/.secret", "theirs");
    symlink(machine.path("home/.secret/theirs"), machine.path("project/.claude/skills/theirs"))
        .unwrap();
    let page = machine.look("skills: {worker: [theirs], trust_repository: true}\n").page();
    assert!(page.contains("left out: theirs from the repository's .claude/skills"), "{page}");
    assert!(page.contains("a link leads out of it"), "{page}");
}

#[test]
fn a_folder_cannot_steer_the_terminal_by_its_name() {
    let machine = Machine::new();
    machine.skill("home/.claude/skills", "x\u{1b}[2J\nforged for worker");
    let page = machine.look("").page();
    assert!(page.starts_with("left out: x\\u{1b}[2J\\nforged for worker from"), "{page}");
    assert!(!page.contains(['\u{1b}', '\n']), "{page}");
}

fn config(yaml: &str) -> config::Skills {
    config::read(format!("schema_version: 2\n{yaml}").as_bytes()).config.unwrap().skills
}

fn pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
}

#[test]
fn a_folder_that_cannot_be_copied_whole_is_refused_with_the_reason() {
    type Spoil = fn(&Path, &Machine);
    let cases: [(&str, Spoil); 8] = [
        ("a link leads out of it", |folder, machine| {
            fs::write(machine.path("secret"), "x").unwrap();
            symlink(machine.path("secret"), folder.join("notes.md")).unwrap();
        }),
        ("a link leads out of it", |folder, _| {
            fs::remove_file(folder.join("SKILL.md")).unwrap();
            let other = folder.parent().unwrap().join("mine.md");
            fs::write(&other, "---\nname: mine\ndescription: x\n---\n").unwrap();
            symlink(other, folder.join("SKILL.md")).unwrap();
        }),
        ("is no plain file", |folder, _| pipe(&folder.join("pipe"))),
        // Nobody ever writes to it: whoever waits for that waits for good.
        ("is no plain file", |folder, _| {
            fs::remove_file(folder.join("SKILL.md")).unwrap();
            pipe(&folder.join("SKILL.md"));
        }),
        ("is no plain file", |folder, _| symlink(".", folder.join("again")).unwrap()),
        ("larger than 1024 KiB", |folder, _| {
            for name in ["a", "b"] {
                fs::write(folder.join(name), vec![b'x'; 600 << 10]).unwrap();
            }
        }),
        ("more than 200 files", |folder, _| {
            for number in 0..201 {
                fs::write(folder.join(format!("{number}")), "").unwrap();
            }
        }),
        ("lies too deep", |folder, _| {
            fs::create_dir_all(folder.join("1/2/3/4/5/6/7/8/9")).unwrap();
        }),
    ];
    for (why, spoil) in cases {
        let machine = Machine::new();
        spoil(&machine.skill("home/.claude/skills", "mine"), &machine);
        let found = machine.look(MINE);
        assert_eq!(given(&found), Vec::<String>::new(), "{why}");
        assert!(found.page().contains(why), "{why}: {}", found.page());
        let said = found.complaints(&config(MINE)).join("\n");
        assert!(said.contains("cannot be used") && said.contains(why), "{why}: {said}");
        // Another of its name steps in.
        machine.skill("home/.agents/skills", "mine");
        assert_eq!(given(&machine.look(MINE)), ["mine in home/.agents/skills [Worker]"]);
    }
}

#[test]
fn the_copy_has_the_files_of_the_skills_and_nothing_else() {
    let machine = Machine::new();
    let folder = machine.skill("home/.claude/skills", "mine");
    fs::create_dir_all(folder.join(".git/hooks")).unwrap();
    fs::write(folder.join(".git/hooks/x"), "").unwrap();
    fs::create_dir(folder.join("more")).unwrap();
    fs::write(folder.join("more/a.bin"), [0, 159]).unwrap();
    symlink("more/a.bin", folder.join("b.bin")).unwrap();
    let found = machine.look(MINE);
    let set = machine.path("set");
    write(&found.of(Role::Worker), &set).unwrap();
    let names = |of: &Path| {
        let mut all: Vec<String> = walk(of).iter().map(|it| it.display().to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(
        names(&set),
        [
            ".claude-plugin/plugin.json",
            "skills/mine/SKILL.md",
            "skills/mine/b.bin",
            "skills/mine/more/a.bin"
        ]
    );
    assert_eq!(fs::read(set.join("skills/mine/b.bin")).unwrap(), [0, 159]);
    // The same content has the same name wherever it is, another has another.
    let digest = |machine: &Machine| machine.look(MINE).given[0].skill.digest.clone();
    let before = digest(&machine);
    assert_eq!(digest(&machine), before);
    fs::write(folder.join("more/a.bin"), [0, 160]).unwrap();
    assert_ne!(digest(&machine), before);
    // A second time there is only what is given then.
    write(&[], &set).unwrap();
    assert!(!set.exists());
}

fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn a_name_that_is_not_there_is_answered_with_those_that_are() {
    let machine = Machine::new();
    machine.skill("home/.claude/skills", "house-style");
    machine.skill("home/.claude/skills", "unnamed");
    let yaml = "superpowers: {skills: [brainstorm]}\nskills: {worker: [hous-style]}\n";
    assert_eq!(
        machine.look(yaml).complaints(&config(yaml)),
        [
            "the skill `brainstorm` is called `brainstorming` now; write that in the configuration",
            "the skill `brainstorming` is not there. There are: `house-style`, `unnamed`",
            "the skill `hous-style` is not there. Did you mean `house-style`? There are: \
             `house-style`, `unnamed`",
        ]
    );
    // What nobody wrote down is not missed.
    assert_eq!(machine.look("").complaints(&config("")), Vec::<String>::new());
}
