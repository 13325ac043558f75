//! What agents commit, from end to end: a command line is run in a real
//! workspace inside the sandbox, nobody being asked about it; what it left is
//! harvested and inspected by the code that sessions use.

use blueflame::attempt::spec::Author;
use blueflame::checks::facts;
use blueflame::workspace::{Order, Workspace, WorkspaceName, Workspaces, branch};
use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{Oid, Role, SessionId, TaskId};
use blueflame_core::inspection;
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::{Policy, PolicyRules};
use serde_json::Value;

use crate::cage::{Cage, Outcome, everything};

const CASES: &str = include_str!("../../../core/tests/policy/cases.json");

/// As the corpus states its policy, for a task that may change `src`.
const CONFIG: &str = r#"
schema_version: 2
permissions:
  allowed_paths: ["src/**", "tests/**", "docs/**"]
  blocked_paths: [".env*", "*.secret", "*.key", "go.mod"]
validation:
  commit_format: { pattern: '^(feat|fix|refactor|test|docs|chore)\(task-\d+\): .+' }
  require_tests: { enabled: false }
  file_naming: { style: snake_case, enforce_for: ["none/**"] }
"#;

/// What became of an agent's work.
#[derive(Debug)]
enum Fate {
    /// It may be merged; with what the person is shown beside it.
    Taken {
        remarks: Vec<String>,
    },
    /// There is nothing to take.
    Nothing,
    Refused {
        violations: Vec<String>,
    },
}

struct Scene {
    cage: Cage,
    workspaces: Workspaces,
    workspace: Workspace,
    policy: Policy,
}

impl Scene {
    fn new() -> Scene {
        let mut cage = Cage::new();
        let root = cage.env.path("repo");
        for (path, text) in [("src/f1.txt", "1\n"), ("src/auth/a.sh", "#!/bin/sh\n")] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        let git = |words: &[&str]| {
            let mut git = cage.env.command("git");
            git.args(words).current_dir(&root);
            cage.env.run(git).success().trim().to_owned()
        };
        git(&["add", "src"]);
        git(&["commit", "-q", "-m", "more"]);
        let start = Oid::new(git(&["rev-parse", "HEAD"])).unwrap();
        let session = SessionId::new("ses-20260206-143022").unwrap();
        let place = LockPath::new(".trees").unwrap();
        let workspaces =
            Workspaces::new(&root.join(".git"), &root, &place, session.clone()).unwrap();
        let author = Author { name: "Agent".into(), email: "agent@example.com".into() };
        let workspaces = workspaces.committing_as(author);
        let work = Work::Develop { task: TaskId::new("task-001").unwrap(), attempt: 1 };
        let (config, _) = config::read(CONFIG.as_bytes()).into_result().unwrap();
        let order = Order {
            name: WorkspaceName::of(&work),
            branch: branch(&session, &work),
            start,
            restore: None,
            in_one_place: false,
            fittings: config.worktree.clone(),
        };
        let workspaces = workspaces.keep_free(0);
        let workspace = workspaces.create(&order).unwrap().workspace;
        cage.workspace.clone_from(&workspace.path);
        let locks = [LockPath::new("src").unwrap()];
        let policy = Policy::new(PolicyRules::of(&config, Role::Worker, &locks)).unwrap();
        Scene { cage, workspaces, workspace, policy }
    }

    /// What an agent does that nobody stops: all of its workspace is open to it.
    fn agent(&self, command: &str) -> Outcome {
        let mut shell = self.cage.command(everything(), command);
        for who in ["AUTHOR", "COMMITTER"] {
            for what in ["NAME", "EMAIL", "DATE"] {
                shell.env_remove(format!("GIT_{who}_{what}"));
            }
        }
        let output = shell.output().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn fate(&self) -> Fate {
        let harvest = match self.workspaces.harvest(&self.workspace) {
            Ok(harvest) => harvest,
            Err(error) if error.is_the_agents() => {
                return Fate::Refused { violations: error.violations() };
            }
            // No agent brings a session to a halt.
            Err(error) => panic!("it is taken for the machine's fault: {error}"),
        };
        if harvest.commits == 0 {
            return Fate::Nothing;
        }
        let now = jiff::Timestamp::now().as_second();
        let (start, author) = (&self.workspace.start, "Agent <agent@example.com>");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let work = runtime.block_on(facts::gather(
            self.workspaces.objects(),
            start,
            &harvest.head,
            author,
            now,
        ));
        let found = inspection::inspect(&self.policy, &work.unwrap());
        if found.violations.is_empty() {
            Fate::Taken { remarks: found.remarks() }
        } else {
            Fate::Refused { violations: found.violations() }
        }
    }

    /// Whether the person's repository is as it was, apart from what is ours.
    fn is_intact(&self) -> bool {
        let git = |words: &[&str]| {
            let mut git = self.cage.env.command("git");
            git.args(words).current_dir(self.cage.env.path("repo"));
            self.cage.env.run(git).success()
        };
        git(&["fsck", "--strict", "--no-dangling"]);
        let refs = git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"]);
        let whole = !self.cage.env.path("repo/.git/shallow").exists();
        whole && refs == "refs/heads/main\n" && git(&["status", "--porcelain", "-uno"]).is_empty()
    }
}

#[test]
fn every_git_case_of_the_corpus_is_decided_as_expected() {
    let corpus: Value = serde_json::from_str(CASES).unwrap();
    let cases = corpus["cases"].as_array().unwrap().iter();
    let cases: Vec<&Value> = cases.filter(|case| case["layer"] == "git").collect();
    assert_eq!(cases.len(), 13);
    let mut wrong = Vec::new();
    for case in cases {
        let command = case["tool_input"]["command"].as_str().unwrap();
        let scene = Scene::new();
        let ran = scene.agent(command);
        let fate = scene.fate();
        let held = match case["expected"].as_str().unwrap() {
            "deny" => !ran.stdout.contains("PWNED") && !matches!(fate, Fate::Taken { .. }),
            "allow" => matches!(fate, Fate::Taken { .. }),
            "contain" => true,
            other => panic!("what is `{other}`?"),
        };
        if !held || !scene.is_intact() {
            wrong.push(format!("{}: {command}\n{ran:?}\n{fate:?}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// An ordinary commit, for cases that need one to hide behind.
const GOOD: &str = "echo 2 > src/f1.txt; git commit -qam 'feat(task-001): x'";
/// A tree below `src` with one file of this name, committed past the index.
fn named(name: &str) -> String {
    format!(
        "t=$(printf '100644 blob %s\\t%s\\0' $(git hash-object -w src/f1.txt) \"$(printf '{name}')\" | git mktree -z); \
         s=$( (git ls-tree HEAD:src; printf '040000 tree %s\\tevil\\n' $t) | git mktree ); \
         n=$( (git ls-tree HEAD | grep -v '[[:space:]]src$'; printf '040000 tree %s\\tsrc\\n' $s) | git mktree ); \
         git update-ref HEAD $(git commit-tree $n -p HEAD -m 'feat(task-001): x')"
    )
}

/// A second branch with a key in it, which is merged like this.
fn merged(key: &str, how: &str) -> String {
    format!(
        "git checkout -qb side; echo {key} > src/side.txt; git add -A; git commit -qm 'feat(task-001): x'; \
         git checkout -q -; {GOOD}; git merge -q {how} side; git branch -qD side"
    )
}

/// The body of a commit that the agent writes by hand; it goes on with headers.
const BY_HAND: &str = "tree=$(git write-tree); at='Agent <agent@example.com> '$(date +%s)' +0000'; \
     put() { git update-ref HEAD $(git hash-object -t commit -w --literally --stdin); }; \
     head() { printf 'tree %s\\nparent %s\\nauthor %s\\ncommitter %s\\n' $tree $(git rev-parse HEAD) \"$at\" \"$at\"; };";

#[test]
fn work_that_breaks_a_rule_is_refused_by_that_rule() {
    let key = concat!("AKIA", "Z7Q2N4KD83HFMW5T");
    let ok = "git commit -qm 'feat(task-001): x'";
    let secret = format!(
        "echo {key} > src/f1.txt; git commit -qam 'feat(task-001): x'; echo 3 > src/f1.txt; git commit -qam 'fix(task-001): y'"
    );
    let rows: Vec<(&str, String)> = [
        ("changes.secret", secret),
        ("changes.secret", format!("{GOOD}; git commit -q --allow-empty -m 'fix(task-001): x' -m {key}")),
        ("changes.secret", merged(key, "-s ours -m 'feat(task-001): m'")),
        ("changes.secret", merged(key, "--no-ff -m 'feat(task-001): m'")),
        ("changes.secret", format!("{}; git rm -q src/side.txt; git commit -qm 'fix(task-001): y'", merged(key, "-m 'feat(task-001): m'"))),
        ("changes.secret", format!("git checkout -qb side; echo 5 > src/s.txt; git add -A; {ok}; git checkout -q -; {GOOD}; git merge -q --no-commit side; echo {key} > src/s.txt; git add -A; git commit -qm 'feat(task-001): m'; git branch -qD side")),
        ("changes.secret", format!("echo 1 > src/{key}; git add -A; {ok}")),
        ("changes.secret", format!("printf '\\211PNG\\r\\n\\032\\n\\0\\0{key}\\0' > src/s.png; git add -A; {ok}")),
        ("changes.secret", format!("echo {key} > src/s; git add -A; {ok}; git mv src/s src/t; git commit -qm 'fix(task-001): y'")),
        ("changes.size", "echo 3 > src/f1.txt; (echo 'feat(task-001): x'; echo; yes word | head -c 300000) | git commit -qaF -".to_owned()),
        ("changes.history", named(".GIT")),
        ("changes.history", named("git~1")),
        ("changes.history", named(".g\\342\\200\\214it")),
        ("changes.history", named("..")),
        ("names.confusable", named("gitmod~1")),
        ("paths.not-allowed", format!("echo x > other.txt; git add -A; {ok}")),
        ("paths.scope", format!("mkdir docs; echo x > docs/a.md; git add -A; {ok}")),
        ("paths.not-allowed", format!("git update-index --add --cacheinfo 100755,$(git hash-object -w src/f1.txt),.github/workflows/ci.yml; {ok}; git rm -q --cached .github/workflows/ci.yml; git commit -qm 'fix(task-001): y'")),
        ("paths.not-allowed", format!("git rm -q README.md; {ok}")),
        ("paths.blocked", format!("echo x > src/.env.local; git add -fA; {ok}")),
        ("paths.blocked", format!("echo x > src/SERVER.KEY; git add -fA; {ok}")),
        ("paths.protected", format!("echo '* text' > src/.gitattributes; git add -A; {ok}")),
        ("paths.protected", format!("echo x > src/.GitModules; git add -A; {ok}")),
        ("paths.protected", format!("mkdir src/.claude; echo x > src/.claude/settings.json; git add -A; {ok}")),
        ("changes.kind", format!("ln -s /etc/passwd src/link; git add -A; {ok}")),
        ("changes.kind", format!("ln -s f1.txt src/inner; git add -A; {ok}")),
        ("changes.kind", format!("git update-index --add --cacheinfo 120000,$(printf ../.. | git hash-object -w --stdin),src/l; {ok}")),
        ("changes.kind", format!("ln -sf ../../x src/f1.txt; git add -A; {ok}; git rm -q --cached src/f1.txt; echo 1 > src/f2.txt; git add src/f2.txt; git commit -qm 'fix(task-001): y'")),
        ("changes.kind", format!("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),src/sub; {ok}")),
        ("changes.binary", format!("head -c 4000 /dev/urandom > src/tool; git add -A; {ok}")),
        ("changes.binary", format!("head -c 4000 /dev/urandom > src/tool; git add -A; {ok}; git rm -q src/tool; echo 3 > src/f3; git add -A; git commit -qm 'fix(task-001): y'")),
        ("changes.size", format!("yes x | head -c 6000000 > src/big.txt; git add -A; {ok}")),
        ("paths.strange", format!("echo x > \"$(printf 'src/a\\342\\200\\256b.txt')\"; git add -A; {ok}")),
        ("paths.strange", format!("echo x > \"$(printf 'src/a\\033[2Jb.txt')\"; git add -A; {ok}")),
        ("names.confusable", format!("echo x > src/F1.txt; git add -A; {ok}")),
        ("names.confusable", format!("mkdir src/Auth; echo x > src/Auth/b.sh; git add -A; {ok}")),
        ("names.confusable", format!("echo x > \"$(printf 'src/p\\320\\260y.txt')\"; git add -A; {ok}")),
        ("names.confusable", format!("echo x > 'src/-rf'; git add -A; {ok}")),
        ("commit.format", "echo 2 > src/f1.txt; git commit -qam wip".to_owned()),
        ("commit.format", format!("{GOOD}; git commit -q --allow-empty -m wip")),
        ("commit.message", format!("{GOOD}; git commit -q --allow-empty -m \"$(printf 'feat(task-001): x\\n\\n\\342\\200\\256evil')\"")),
        ("changes.history", format!("{BY_HAND} (head; printf '\\nfeat(task-001): x\\0hidden\\n') | put")),
        ("commit.headers", format!("{BY_HAND} (head; printf 'gpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n\\nfeat(task-001): x\\n') | put")),
        ("commit.headers", format!("{BY_HAND} (head; printf 'encoding x-evil\\n\\nfeat(task-001): x\\n') | put")),
        ("commit.author", "echo 2 > src/f1.txt; git commit -qa --author='Ada <ada@example.com>' -m 'feat(task-001): x'".to_owned()),
        ("commit.author", "echo 2 > src/f1.txt; GIT_COMMITTER_NAME=Ada git commit -qam 'feat(task-001): x'".to_owned()),
        ("changes.history", "git reset -q --hard HEAD~1; echo 2 > src/a.txt; git commit -qam 'feat(task-001): x'".to_owned()),
        ("changes.history", format!("{GOOD}; other=$(git commit-tree HEAD^{{tree}} -m 'feat(task-001): z'); git merge -q --allow-unrelated-histories -m 'feat(task-001): m' $other")),
        ("changes.history", "git checkout -q --detach; git update-ref -d refs/heads/$(git for-each-ref --format='%(refname:lstrip=2)' refs/heads)".to_owned()),
        ("changes.history", format!("{GOOD}; git replace HEAD HEAD~1")),
        ("changes.branches", format!("{GOOD}; git checkout -qb other; echo 3 > src/f1.txt; git commit -qam 'feat(task-001): y'")),
        ("changes.branches", "git checkout -q --orphan other; git commit -qm 'feat(task-001): y'".to_owned()),
    ]
    .into_iter()
    .collect();
    let mut wrong = Vec::new();
    for (rule, command) in rows {
        let scene = Scene::new();
        let ran = scene.agent(&command);
        let fate = scene.fate();
        let told = match &fate {
            Fate::Refused { violations } => violations.iter().any(|it| it.starts_with(rule)),
            Fate::Taken { .. } | Fate::Nothing => false,
        };
        if !told || !scene.is_intact() {
            wrong.push(format!("{rule}: {command}\n{ran:?}\n{fate:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn what_is_no_harm_stays_in_the_workspace_or_is_shown() {
    let rows = [
        ("chmod +x src/f1.txt; git commit -qam 'feat(task-001): x'", Some("changes.mode")),
        (&format!("{GOOD}; git tag -a v9 -m v9; git notes add -m evil; git branch same"), None),
        (&format!("{GOOD}; echo 9 > src/f1.txt; git stash -q"), None),
        (&format!("{GOOD}; git rev-parse HEAD > .git/shallow"), None),
        (&format!("git config core.hooksPath evil; echo x > .git/hooks/pre-commit; {GOOD}"), None),
        (&format!("export GIT_AUTHOR_DATE='1999-01-01T00:00:00Z'; {GOOD}"), Some("commit.date")),
        (
            &format!(
                "git checkout -qb side; {GOOD}; git checkout -q -; git merge -q --no-ff -m 'feat(task-001): m' side; git branch -qD side"
            ),
            Some("commit.merge"),
        ),
        ("git mv src/f1.txt src/f2.txt; git commit -qm 'feat(task-001): x'", None),
        ("rm src/a.txt; git commit -qam 'feat(task-001): x'", None),
        (
            "echo 'tests/ü b.txt' > 'src/ü b.txt'; git add -A; git commit -qm 'feat(task-001): x'",
            None,
        ),
    ];
    for (command, remark) in rows {
        let scene = Scene::new();
        let ran = scene.agent(command);
        match scene.fate() {
            Fate::Taken { remarks } => {
                let found = remarks.first().map(String::as_str);
                let fits = remark.is_none_or(|rule| found.is_some_and(|it| it.starts_with(rule)));
                assert!(fits && remark.is_some() == found.is_some(), "{command}: {remarks:?}");
            }
            other => panic!("{command}: {other:?}, {ran:?}"),
        }
        assert!(scene.is_intact(), "{command}");
    }
    let scene = Scene::new();
    scene.agent("git tag -f v1.0; git branch -f release");
    assert!(matches!(scene.fate(), Fate::Nothing));
}

/// What is refused can be looked at in the person's repository.
#[test]
fn what_was_refused_is_kept_where_it_is_said_to_be() {
    let scene = Scene::new();
    scene.agent(&format!("echo x > other.txt; git add -A; {GOOD}; git checkout -qb more; echo 3 > src/f1.txt; git commit -qam 'feat(task-001): more'"));
    let Fate::Refused { violations } = scene.fate() else { panic!("it was taken") };
    let kept = scene.workspaces.kept(&scene.workspace);
    let show = |text: &str| {
        let name = text.split('`').find(|part| part.starts_with("refs/blueflame/")).unwrap();
        let mut git = scene.cage.env.command("git");
        git.args(["show", "--stat", "--format=%s", name]).current_dir(scene.cage.env.path("repo"));
        scene.cage.env.run(git).success()
    };
    assert!(show(&kept).contains("feat(task-001): x") && show(&kept).contains("other.txt"));
    assert!(show(&violations[0]).contains("feat(task-001): more"), "{violations:?}");
    // The place that is named when nothing could be taken over is there as well.
    let scene = Scene::new();
    std::fs::write(scene.workspace.path.join(".git/commondir"), "/tmp").unwrap();
    assert!(matches!(scene.fate(), Fate::Refused { .. }));
    let place = scene.workspace.path.display().to_string();
    assert_eq!(scene.workspaces.kept(&scene.workspace), format!("kept: the work is in `{place}`"));
}
