//! `blueflame doctor`: what is missing is found, and what to type is said.

use blueflame_testkit::{Ran, Repository, TestEnv};

use crate::init_command::{command, install, programs};

const SCRIPTED: &str = "schema_version: 2\n\
    project: {name: looked-at, base_branch: main}\n\
    concurrency: {adaptive: false}\n\
    executors: {default: embedded}\n\
    gateway: {upstream: 'script:script.yaml'}\n";

fn project<'e>(env: &'e TestEnv, config: &str) -> Repository<'e> {
    let repository = env.repository("project");
    repository.write("blueflame.yaml", config);
    repository.write("script.yaml", "replies: [{say: hi}]\n");
    repository.commit("start");
    repository
}

fn doctor(env: &TestEnv, repository: &Repository<'_>) -> Ran {
    env.run(command(env, repository.path(), &["doctor"]))
}

/// The line about a subject, and what follows it up to the next one.
fn about<'r>(ran: &'r Ran, subject: &str) -> &'r str {
    let page = &ran.stdout;
    let start = page.find(&format!("{subject} ")).unwrap_or_else(|| panic!("no {subject}: {page}"));
    let next = page[start..]
        .match_indices('\n')
        .find(|(at, _)| page[start + at + 1..].chars().next().is_none_or(|c| !c.is_whitespace()));
    &page[start..start + next.map_or(page.len() - start, |(at, _)| at)]
}

#[test]
fn with_everything_there_a_session_can_begin() {
    let env = TestEnv::new();
    let ran = doctor(&env, &project(&env, SCRIPTED));
    assert_eq!(ran.code(), Some(0), "{}", ran.stdout);
    assert!(about(&ran, "model").contains("nothing is spent"), "{}", ran.stdout);
    let roles = "for planner, worker, validator, merger";
    assert!(about(&ran, "executor embedded").contains(roles), "{}", ran.stdout);
    assert!(about(&ran, "sandbox").contains("tried, and holds"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("MISSING"), "{}", ran.stdout);
}

#[test]
fn each_thing_that_is_missing_is_said_with_a_remedy() {
    let env = TestEnv::new();
    let place = env.path("nowhere");
    std::fs::create_dir(&place).unwrap();
    let ran = env.run(command(&env, &place, &["doctor"]));
    assert_eq!(ran.code(), Some(3), "{}", ran.stdout);
    assert!(about(&ran, "repository").contains("-> go to your project"), "{}", ran.stdout);
    assert!(about(&ran, "configuration").contains("`blueflame init`"), "{}", ran.stdout);

    let config = "schema_version: 2\n\
        project: {name: p, base_branch: main}\n\
        executors: {default: claude}\n\
        gateway: {credential_env: MY_OWN_KEY}\n";
    let repository = project(&env, config);
    let ran = doctor(&env, &repository);
    assert_eq!(ran.code(), Some(3), "{}", ran.stdout);
    assert!(about(&ran, "executor claude").contains("npm install --global"), "{}", ran.stdout);
    assert!(about(&ran, "model").contains("export MY_OWN_KEY=..."), "{}", ran.stdout);

    let off = config.replace("executors:", "sandbox: {mode: off}\nexecutors:");
    repository.write("blueflame.yaml", &off);
    let ran = doctor(&env, &repository);
    assert!(about(&ran, "sandbox").contains("no sandbox"), "{}", ran.stdout);

    // With a second choice, and with the program there but not running.
    let config = config.replace("claude}", "claude, fallback: [embedded]}");
    repository.write("blueflame.yaml", &config);
    install(&env, "claude", "exit 7");
    let ran = doctor(&env, &repository);
    let claude = about(&ran, "executor claude");
    assert!(claude.contains("warning") && claude.contains("does not run"), "{}", ran.stdout);
    assert!(claude.contains("another one steps in"), "{}", ran.stdout);
    install(&env, "claude", "echo 1.0.0");
    let ran = doctor(&env, &repository);
    assert!(about(&ran, "executor claude").contains("never tested"), "{}", ran.stdout);

    // With a program whose dialect the provider does not speak, and then one that does.
    install(&env, "opencode", "echo 1.18.33");
    let config = config.replace("claude, fallback: [embedded]}", "opencode}");
    repository.write("blueflame.yaml", &config);
    let ran = doctor(&env, &repository);
    let opencode = about(&ran, "executor opencode");
    assert!(opencode.contains("/v1/chat/completions") && ran.code() == Some(3), "{}", ran.stdout);
    repository
        .write("blueflame.yaml", &config.replace("{credential", "{upstream: openai, credential"));
    let ran = doctor(&env, &repository);
    let opencode = about(&ran, "executor opencode");
    assert!(opencode.contains("1.18.33 at $ROOT/bin/opencode"), "{opencode}");
    assert!(opencode.contains("without `rg` in PATH it has no Glob and Grep"), "{opencode}");
    let own = config.replace(
        "{default: opencode}",
        "{default: mine, custom: {mine: {command: [opencode], dialect: DIALECT}}}",
    );
    let own = own.replace("{credential", "{upstream: openai, credential");
    for (dialect, said) in [
        ("plain", "a program of your own at $ROOT"),
        ("codex-json", "a program of your own at $ROOT"),
        ("claude-stream", "a program of your own at $ROOT"),
    ] {
        repository.write("blueflame.yaml", &own.replace("DIALECT", dialect));
        let ran = doctor(&env, &repository);
        assert!(about(&ran, "executor mine").contains(said), "{}", ran.stdout);
    }
    repository
        .write("blueflame.yaml", &config.replace("{credential", "{upstream: openai, credential"));
    install(&env, "rg", "exit 0");
    let ran = doctor(&env, &repository);
    let opencode = about(&ran, "executor opencode");
    assert!(!opencode.contains("without"), "{opencode}");
}

#[test]
fn an_old_git_is_noticed() {
    let env = TestEnv::new();
    let repository = project(&env, SCRIPTED);
    let git = programs(&env).join("git");
    let real = std::fs::read_link(&git).unwrap();
    std::fs::remove_file(&git).unwrap();
    // Whatever comes before the subcommand, the last word is `version`.
    let old = format!(
        "eval last=\\${{$#}}\n\
         if test \"$last\" = version; then echo git version 2.30.2; exit; fi\n\
         exec {} \"$@\"",
        real.display()
    );
    install(&env, "git", &old);
    let ran = doctor(&env, &repository);
    assert_eq!(ran.code(), Some(3), "{}", ran.stdout);
    assert!(about(&ran, "git").contains("2.30.2 is too old"), "{}", ran.stdout);
    let ran = env.run(command(&env, repository.path(), &["run", "--task", "x", "--yes"]));
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("2.30.2 is too old"), "{}", ran.stderr);
}

#[test]
fn programs_are_told_the_same() {
    let env = TestEnv::new();
    let repository = project(&env, SCRIPTED);
    let ran = env.run(command(&env, repository.path(), &["doctor", "--json"]));
    // Nobody has told git in this home who they are.
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["standing"], "warning", "{document}");
    let subjects = document["findings"].as_array().unwrap().iter();
    let subjects: Vec<&str> = subjects.map(|it| it["subject"].as_str().unwrap()).collect();
    assert!(subjects.contains(&"git") && subjects.contains(&"disk"), "{subjects:?}");
}

/// What each can do is a table, with what was found here; the same for programs.
#[test]
fn executors_are_shown_side_by_side_with_what_they_can_do() {
    let env = TestEnv::new();
    let config = "schema_version: 2\n\
        project: {name: p, base_branch: main}\n\
        executors:\n  \
          default: claude\n  \
          fallback: [codex]\n  \
          accounts: {codex: other, opencode: mine}\n  \
          custom: {own: {command: [claude]}}\n\
        gateway:\n  \
          credential_env: FIRST_KEY\n  \
          accounts:\n    \
            other: {upstream: openai, credential_env: SECOND_KEY}\n    \
            mine: {upstream: openai, credential_env: THIRD_KEY, passthrough_auth: true}\n";
    let repository = project(&env, config);
    install(&env, "claude", "echo 2.1.197");
    install(&env, "codex", "echo 0.170.0");
    let run = |arguments: &[&str]| {
        let mut command = command(&env, repository.path(), arguments);
        command.env("SECOND_KEY", "sk-hidden");
        env.run(command)
    };
    let ran = run(&["doctor"]);
    let page = &ran.stdout;
    let row = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("{name}  ")));
        let cells = line.unwrap_or_else(|| panic!("no {name}: {page}")).split("  ");
        cells.map(str::trim).filter(|it| !it.is_empty()).skip(1).collect::<Vec<_>>()
    };
    assert_eq!(row("executor"), ["claude", "codex", "opencode", "embedded", "own"]);
    let versions = row("version");
    assert_eq!(versions[..3], ["2.1.197", "0.170.0", "not installed"], "{page}");
    assert_eq!(row("tested version")[..3], ["2.1.197", "0.166.0", "1.18.33"]);
    let logins = row("login");
    let expected = ["$FIRST_KEY is not set", "$SECOND_KEY is set", "cannot take yours"];
    assert_eq!(logins[..3], expected, "{page}");
    assert_eq!(row("asks the person"), ["planners", "no", "no", "no", "no"]);
    assert!(!page.contains("sk-hidden"), "{page}");
    // Its own account serves codex, so that is no reason against it.
    let codex = about(&ran, "executor codex");
    assert!(codex.contains("never tested") && !codex.contains("cannot ask"), "{page}");
    // Each account has its line, and the one without a key says what to type.
    assert!(page.contains("export FIRST_KEY=..."), "{page}");
    assert!(page.contains("account `other`: openai"), "{page}");

    let document: serde_json::Value =
        serde_json::from_str(&run(&["doctor", "--json"]).stdout).unwrap();
    let codex = &document["executors"][1];
    assert_eq!((&codex["executor"], &codex["version"]), (&"codex".into(), &"0.170.0".into()));
    assert_eq!(codex["veto_before_tool_calls"], "a hook, and the gateway");
}
