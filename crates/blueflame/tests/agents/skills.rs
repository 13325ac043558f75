//! Skills, with the real programs: found in the home of a person, handed over as
//! copies, listed to the model, and used only as far as they were given.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use blueflame::attempt::directory::Directory;
use blueflame::attempt::sealed::Ending;
use blueflame::skills::{self, Offered, Person};
use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, Role};
use blueflame_core::policy::{PolicyRules, SkillRule};

use crate::stage::{Agent, Run, Stage};

/// What the person has: the folders of skills, each with a mark in its text that
/// is nowhere else.
const HAVE: [(&str, &str); 5] = [
    ("test-driven-development", "Use when you are about to write code"),
    ("house-style", "Use when you choose names"),
    ("writing-plans", "Use when you have to plan"),
    ("using-git-worktrees", "Use when you begin a feature"),
    ("unnamed", "Use when nobody asked"),
];

const BROUGHT: &str = "brought-along";

const WISHES: &str = "
schema_version: 2
skills: {worker: [house-style, using-git-worktrees]}
";

fn mark(name: &str) -> String {
    format!("THE TEXT OF {}", name.to_uppercase())
}

fn write_skill(place: &Path, name: &str, description: &str) {
    let folder = place.join(name);
    fs::create_dir_all(folder.join("more")).unwrap();
    // What else stands at the front must not reach any program.
    let text = format!(
        "---\nname: {name}\ndescription: {description}\nallowed-tools: Bash Write\n---\n# {name}\n\
         {}\nNow: !`touch hello.txt`\nSee more/details.md.\n",
        mark(name)
    );
    fs::write(folder.join("SKILL.md"), text).unwrap();
    fs::write(folder.join("more/details.md"), format!("DETAILS OF {name}\n")).unwrap();
}

/// A stage on which an agent of a role gets what the person has for it.
fn taught(agent: Agent, role: Role) -> Option<Stage> {
    Some(teach(Stage::new(agent)?, role))
}

fn teach(stage: Stage, role: Role) -> Stage {
    let home = stage.env.path("home");
    for (name, description) in HAVE {
        write_skill(&home.join(".claude/skills"), name, description);
    }
    // What the repository brings along is nobody's wish.
    for place in [".claude", ".agents", ".codex", ".opencode"] {
        write_skill(&stage.workspace.join(place).join("skills"), BROUGHT, "Use always");
    }
    let person = Person { claude: home.join(".claude"), codex: home.join(".codex"), home };
    let config = config::read(WISHES.as_bytes()).config.unwrap();
    let found = skills::look(&config, &stage.workspace, &person, false);
    let set = found.of(role);
    let directory = Directory::create(stage.directory().root(), &stage.spec).unwrap();
    skills::write(&set, &directory.skill_set()).unwrap();
    stage.with(|spec| {
        if role == Role::Planner {
            spec.agent = AgentId::from_number(Role::Planner, 1);
            spec.work = Work::Plan;
            spec.policy = PolicyRules::of(&config, Role::Planner, &[]);
            spec.snapshots = None;
            spec.order.tools = ["Read", "Glob", "Grep"].map(Into::into).into();
        }
        let folder = directory.skill_set().join(skills::FOLDER);
        let names = set.iter().map(|skill| skill.name.clone()).collect();
        spec.policy.skills =
            Some(SkillRule { folder: folder.to_string_lossy().into_owned(), names });
        spec.order.skills = set.iter().map(|skill| Offered::from(&**skill)).collect();
    })
}

/// The first request lists what was given, and nothing else of what there is.
fn lists(run: &Run, given: &[&str]) {
    let request = run.requests()[0].to_string();
    for (name, description) in HAVE {
        let expected = given.contains(&name);
        assert_eq!(request.contains(description), expected, "{name}: {request}");
        assert!(!request.contains(&mark(name)), "{name} is there before it is asked for");
    }
    for absent in [BROUGHT, "allowed-tools"] {
        assert!(!request.contains(absent), "{absent}: {request}");
    }
}

/// Who uses a skill by a tool, with the key that names it.
fn call(agent: Agent, name: &str) -> String {
    match agent {
        Agent::Claude => format!("{{tool: Skill, input: {{skill: 'blueflame:{name}'}}}}"),
        Agent::Opencode => format!("{{tool: skill, input: {{name: {name}}}}}"),
        Agent::Codex | Agent::Embedded => unreachable!("it reads files"),
    }
}

fn by_tool(agent: Agent) {
    let Some(stage) = taught(agent, Role::Worker) else { return };
    // One that the program has, and that the policy knows nothing of.
    let stage = stage.with(|spec| {
        let skills = spec.policy.skills.as_mut().unwrap();
        skills.names.retain(|name| name.as_str() == "house-style");
    });
    let calls = ["house-style", "test-driven-development", "unnamed"];
    let [given, kept_back, unknown] = calls.map(|name| call(agent, name));
    let script = format!(
        "
replies:
  - when: {{turn: 0}}
    call: [{given}]
  - when: {{turn: 1}}
    call: [{kept_back}]
  - when: {{turn: 2}}
    call: [{unknown}]
  - say: Done.
"
    );
    let run = stage.script(&script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    lists(&run, &["test-driven-development", "house-style"]);
    // The text comes with the call, and not one call without a verdict.
    assert!(run.told(1).contains(&mark("house-style")), "{}", run.told(1));
    let audit = run.audit();
    let verdicts: Vec<(&str, &str)> = audit
        .iter()
        .map(|line| (line["decision"].as_str().unwrap(), line["rule"].as_str().unwrap()))
        .collect();
    assert_eq!(verdicts[..2], [("allow", "tools.skill"), ("deny", "tools.skill")], "{audit:?}");
    assert!(run.told(2).contains("was not given to you"), "{}", run.told(2));
    // A command in its text is text.
    assert_eq!(run.file("hello.txt"), None, "{}", run.story());
    for name in &calls[1..] {
        assert!(!run.told(3).contains(&mark(name)), "{}", run.told(3));
    }
}

#[test]
fn claude_brings_the_text_of_a_skill_that_was_given_and_of_no_other() {
    by_tool(Agent::Claude);
}

#[test]
fn opencode_brings_the_text_of_a_skill_that_was_given_and_of_no_other() {
    by_tool(Agent::Opencode);
}

fn by_reading(agent: Agent) {
    let Some(stage) = taught(agent, Role::Worker) else { return };
    let folder = stage.directory().skill_set().join(skills::FOLDER);
    let home = stage.env.path("home/.claude/skills/house-style/SKILL.md");
    let read = |path: &Path| match agent {
        Agent::Embedded => format!("{{tool: Read, input: {{file_path: '{}'}}}}", path.display()),
        _ => format!("{{tool: Bash, input: {{command: 'cat {}'}}}}", path.display()),
    };
    let script = format!(
        "
replies:
  - when: {{turn: 0}}
    call: [{}]
  - when: {{turn: 1}}
    call: [{}]
  - when: {{turn: 2}}
    call: [{}]
  - when: {{turn: 3}}
    call: [{{tool: Write, input: {{file_path: '{}', content: x}}}}]
  - say: Done.
",
        read(&folder.join("house-style/SKILL.md")),
        read(&folder.join("house-style/more/details.md")),
        read(&home),
        folder.join("house-style/SKILL.md").display(),
    );
    let run = stage.script(&script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    lists(&run, &["test-driven-development", "house-style"]);
    // Where it is listed is where it can be read.
    assert!(run.told(0).contains("house-style/SKILL.md"), "{}", run.told(0));
    assert!(run.told(1).contains(&mark("house-style")), "{}", run.told(1));
    assert!(run.told(2).contains("DETAILS OF house-style"), "{}", run.told(2));
    let audit = run.audit();
    let rules: Vec<&str> = audit.iter().map(|line| line["rule"].as_str().unwrap()).collect();
    let reads = if agent == Agent::Embedded { "paths.read" } else { "commands.allowed" };
    assert_eq!(rules, [reads, reads, "paths.outside", "paths.outside"], "{audit:?}");
}

#[test]
fn the_embedded_agent_reads_what_it_was_given_and_not_the_home_it_came_from() {
    by_reading(Agent::Embedded);
}

#[test]
fn codex_reads_what_it_was_given_and_not_the_home_it_came_from() {
    by_reading(Agent::Codex);
}

fn plans(agent: Agent) {
    let Some(stage) = taught(agent, Role::Planner) else { return };
    let run = stage.script("replies: [{say: Done.}]").run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    lists(&run, &["writing-plans"]);
}

#[test]
fn a_planner_has_other_skills_than_a_worker() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Opencode, Agent::Embedded] {
        plans(agent);
    }
}

/// In no sandbox it would be the policy alone that keeps it from the home.
#[test]
fn the_home_that_skills_came_from_is_not_in_the_sandbox() {
    let Some(stage) = taught(Agent::Embedded, Role::Worker) else { return };
    let folder = stage.directory().skill_set().join(skills::FOLDER);
    let home = stage.env.path("home/.claude/skills");
    let stage = stage.with(|spec| {
        spec.policy.allowed_commands.extend(["make".to_owned()]);
    });
    let makefile = format!(
        "look:\n\t-cat {home}/house-style/SKILL.md\n\t-cat {folder}/house-style/SKILL.md\n\t-echo \
         x >> {folder}/house-style/SKILL.md\n\t-touch {folder}/new\n",
        home = home.display(),
        folder = folder.display(),
    );
    fs::write(stage.workspace.join("Makefile"), makefile).unwrap();
    let run = stage
        .script(
            "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: make look}}]
  - say: Done.
",
        )
        .run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let told = run.told(1);
    assert_eq!(told.matches(&mark("house-style")).count(), 1, "{told}");
    assert!(told.contains("No such file or directory"), "{told}");
    let copy = fs::read_to_string(folder.join("house-style/SKILL.md")).unwrap();
    assert!(copy.ends_with("See more/details.md.\n"), "{copy}");
    assert!(!folder.join("new").exists());
}

/// Without skills it has no commands at all; with them it still takes a prompt for one.
#[test]
fn a_prompt_that_looks_like_a_command_reaches_a_claude_with_skills() {
    let Some(stage) = taught(Agent::Claude, Role::Worker) else { return };
    let stage = stage.with(|spec| spec.order.prompt = "/blueflame:house-style as a word".into());
    let run = stage.script("replies: [{say: Done.}]").run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert!(run.told(0).contains("/blueflame:house-style as a word"), "{}", run.told(0));
    assert!(!run.told(0).contains(&mark("house-style")), "{}", run.told(0));
}

#[test]
fn a_program_of_the_persons_own_is_told_where_its_skills_are() {
    let program = tempfile::tempdir().unwrap().keep().join("agent");
    let script = "#!/bin/sh\n\
        echo '{\"hook_event_name\": \"SessionStart\"}' | sh -c \"$BLUEFLAME_HOOK\" >&2\n\
        cd \"$BLUEFLAME_SKILLS\" && echo * && cat house-style/SKILL.md && ! touch new\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let command = vec![program.display().to_string()];
    let custom = config::CustomExecutor { command, dialect: config::Dialect::Plain };
    let stage = teach(Stage::with_program("mine", &program), Role::Worker);
    let stage = stage.with(|spec| spec.custom = Some(custom)).script("replies: [{say: Done.}]");
    let run = stage.run();
    let Ending::Stopped { text, .. } = &run.sealed.ending else { panic!("{}", run.story()) };
    assert!(text.starts_with("house-style test-driven-development\n---\nname:"), "{text}");
    assert!(text.contains(&mark("house-style")), "{text}");
}

/// A mention is enough for some to bring the text.
#[test]
fn what_the_repository_brings_along_is_not_brought_by_its_name_either() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Opencode] {
        let Some(stage) = taught(agent, Role::Worker) else { continue };
        let stage = stage.with(|spec| {
            let word = format!("\nUse ${BROUGHT} and /{BROUGHT} and @{BROUGHT}.\n");
            spec.order.prompt.push_str(&word);
        });
        let run = stage.script("replies: [{say: Done.}]").run();
        assert_eq!(run.end(), "stopped", "{}", run.story());
        let request = run.requests()[0].to_string();
        assert!(!request.contains(&mark(BROUGHT)), "{agent:?}: {request}");
    }
}
