//! The configuration as a whole: what is read, refused, migrated and shown.

use std::time::Duration;

use super::*;
use crate::money::Usd;
use crate::yaml;

/// Messages of all problems, with the text they point at.
fn problems(text: &str) -> Vec<String> {
    let shown = |problem: &Problem| {
        let at = problem
            .span
            .map_or("-", |span| text[span.start..span.end].lines().next().unwrap_or(""));
        let kind = if problem.severity == Severity::Error { "error" } else { "warning" };
        format!("{kind}: {problem} @ {at}")
    };
    read(text.as_bytes()).problems.iter().map(shown).collect()
}

fn good(text: &str) -> Config {
    let reading = read(text.as_bytes());
    assert!(reading.config.is_some(), "{:#?}", reading.problems);
    reading.config.unwrap()
}

fn v2(text: &str) -> String {
    format!("schema_version: 2\n{text}\n")
}

/// Seed section 17, row 1.
#[test]
fn a_file_with_all_fields_is_read() {
    let text = yaml::to_string(&ConfigFile::default()).unwrap();
    for path in key_paths().iter().filter(|path| !path.contains('*')) {
        let last = path.rsplit('.').next().unwrap();
        let optional = path == "gateway.ca_file"
            || path.starts_with("executors.")
                && ["planner", "worker", "validator", "merger"].contains(&last);
        assert!(optional || text.contains(&format!("{last}:")), "{path} is not written");
    }
    let config = good(&text);
    assert_eq!(problems(&text), [""; 0]);
    assert_eq!(config.concurrency.workers, 4);
    assert_eq!(config.limits.agent_timeout, Duration::from_secs(300));
    assert_eq!(config.limits.warn_percent, 80);
    assert_eq!(config.permissions.blocked_patterns.len(), 11);
    assert_eq!(config.models.validator, "haiku");
}

/// Seed section 17, row 2.
#[test]
fn an_invalid_regular_expression_is_refused_with_its_reason() {
    let text = v2("permissions: {bash_rules: {blocked_patterns: ['rm ((-rf', '(?=x)', 'ok']}}");
    assert_eq!(
        problems(&text),
        [
            "error: `permissions.bash_rules.blocked_patterns[0]` is not a valid regular expression: unclosed group @ 'rm ((-rf'",
            "error: `permissions.bash_rules.blocked_patterns[1]` is not a valid regular expression: look-around, including look-ahead and look-behind, is not supported @ '(?=x)'",
        ]
    );
}

/// Seed section 17, row 3.
#[test]
fn a_version_1_file_becomes_version_2_in_memory() {
    let reading = read(b"schema_version: 1\nproject: {name: old}\nsandbox: {max_memory_mb: 512}\n");
    assert_eq!(reading.problems, []);
    assert_eq!(reading.notes.len(), 6);
    let file = reading.file.unwrap();
    assert_eq!(file.schema_version.value, 2);
    assert_eq!((file.project.name.as_str(), file.sandbox.max_memory_mb.value), ("old", 512));
    let config = reading.config.unwrap();
    assert_eq!(config.gateway.upstream, Upstream::Anthropic);
    assert_eq!(config.sandbox.mode, SandboxMode::Auto);
    assert!(config.rules().publish);
}

/// Seed section 17, row 52.
#[test]
fn two_units_for_one_budget_are_refused_and_both_lines_are_shown() {
    let text = v2("limits:\n  max_session_cost_usd: 5\n  max_session_tokens: 100\n  \
         token_budget: {worker_usd: 1, worker_tokens: 2, merger_usd: 0, merger_tokens: 9}");
    let reading = read(text.as_bytes());
    assert_eq!(reading.problems.len(), 2, "{:#?}", reading.problems);
    for problem in &reading.problems {
        assert!(problem.message.contains("are both set"), "{problem}");
        assert_eq!(problem.related.len(), 1);
    }
}

#[test]
fn a_default_gives_way_to_what_is_written_beside_it() {
    let config = good(&v2("limits: {max_session_tokens: 1000, token_budget: {worker_tokens: 7}}"));
    assert_eq!(config.limits.session_budget, Budget::Tokens(1000));
    assert_eq!(config.limits.agent_budgets.worker, Budget::Tokens(7));
    assert_eq!(config.limits.agent_budgets.planner, Budget::Usd(Usd::from_dollars(0.4).unwrap()));
    let config = good(&v2("validation: {commit_format: {pattern: '^x'}}"));
    assert_eq!(config.validation.commit_format.unwrap().example, None);
    let config = good(&v2("permissions: {blocked_tools: [Bash]}"));
    assert!(!config.permissions.allowed_tools.contains(&"Bash".to_owned()));
}

#[test]
fn one_problem_each() {
    for (text, problem) in [
        (
            "concurrency: {development: 9}",
            "error: `concurrency.development` must be at most 8, got `9` @ 9",
        ),
        (
            "concurrency: {development: 0}",
            "error: `concurrency.development` must be at least 1, got `0` @ 0",
        ),
        ("concurrency: {planning: 2}", "error: `concurrency.planning` must be 1, got `2` @ 2"),
        (
            "limits: {max_session_cost_usd: 0.0000001}",
            "error: `limits.max_session_cost_usd` is less than a millionth of a dollar, got `0.0000001` @ 0.0000001",
        ),
        ("concurrency: {merge: 0}", "error: `concurrency.merge` must be 1, got `0` @ 0"),
        (
            "concurrency: {validation: x}",
            "error: `concurrency.validation` must be a whole number, got `x` @ x",
        ),
        (
            "limits: {max_wave_cycles: 0}",
            "error: `limits.max_wave_cycles` must be at least 1, got `0` @ 0",
        ),
        (
            "limits: {agent_timeout: soon}",
            "error: `limits.agent_timeout` is not a length of time, got `soon` @ soon",
        ),
        (
            "limits: {agent_timeout: 0s}",
            "error: `limits.agent_timeout` must be at least 1s, got `0s` @ 0s",
        ),
        (
            "limits: {agent_timeout: -5s}",
            "error: `limits.agent_timeout` must be at least 1s, got `-5s` @ -5s",
        ),
        (
            "limits: {agent_timeout: 48h}",
            "error: `limits.agent_timeout` must be at most 24h, got `48h` @ 48h",
        ),
        (
            "limits: {agent_timeout: 300}",
            "error: `limits.agent_timeout` has no unit, got `300` @ 300",
        ),
        (
            "limits: {idle_timeout: 0s}",
            "error: `limits.idle_timeout` must be at least 1s, got `0s` @ 0s",
        ),
        (
            "limits: {heartbeat_interval: 10m}",
            "warning: `limits.heartbeat_interval` is not shorter than the agent timeout @ 10m",
        ),
        (
            "limits: {max_session_cost_usd: -1}",
            "error: `limits.max_session_cost_usd` cannot be negative, got `-1` @ -1",
        ),
        (
            "limits: {max_session_cost_usd: .nan}",
            "error: `limits.max_session_cost_usd` is not an amount of money, got `NaN` @ .nan",
        ),
        (
            "limits: {max_session_cost_usd: .inf}",
            "error: `limits.max_session_cost_usd` is not an amount of money, got `inf` @ .inf",
        ),
        (
            "limits: {token_budget: {warn_threshold: 80}}",
            "error: `limits.token_budget.warn_threshold` must be between 0 and 1, got `80` @ 80",
        ),
        (
            "sandbox: {allow_network: true}",
            "error: `sandbox.allow_network` must be false: agents never have network access @ true",
        ),
        (
            "sandbox: {mode: off}",
            "warning: `sandbox.mode` is off: agents can read and change everything that you can @ off",
        ),
        (
            "sandbox: {read: [~/.ssh]}",
            "error: `sandbox.read[0]` holds credentials, got `~/.ssh` @ ~/.ssh",
        ),
        (
            "sandbox: {max_disk_mb: 1}",
            "error: `sandbox.max_disk_mb` must be at least 16, got `1` @ 1",
        ),
        (
            "sandbox: {max_memory_mb: 1}",
            "error: `sandbox.max_memory_mb` must be at least 64, got `1` @ 1",
        ),
        (
            "project: {base_branch: 'a b'}",
            "error: `project.base_branch` is not a branch name: it contains a blank, got `a b` @ 'a b'",
        ),
        (
            "project: {worktree_dir: ../x}",
            "error: `project.worktree_dir` must stay inside the repository, got `../x` @ ../x",
        ),
        (
            "project: {tasks_file: .trees/t.yaml}",
            "error: `project.tasks_file` lies in the directory for working copies @ .trees/t.yaml",
        ),
        (
            "project: {tasks_file: /t.yaml}",
            "error: `project.tasks_file` must be relative to the repository, got `/t.yaml` @ /t.yaml",
        ),
        ("models: {worker: ''}", "error: `models.worker` is empty @ ''"),
        (
            "executors: {default: cloude}",
            "error: `executors.default` is not a known executor, got `cloude` @ cloude",
        ),
        (
            "executors: {accounts: {codex: openai}}",
            "error: `executors.accounts.codex` is not a known account, got `openai` @ openai",
        ),
        (
            "executors: {at_most: {codex: 0}}",
            "error: `executors.at_most.codex` must be at least 1, got `0` @ 0",
        ),
        (
            "executors: {models: {codx: gpt-5}}",
            "error: `executors.models.codx` is not a known executor, got `codx` @ gpt-5",
        ),
        (
            "gateway: {accounts: {main: {upstream: openai, credential_env: A}}}",
            "error: `gateway.accounts.main` is what `gateway` itself describes @ {upstream: openai, credential_env: A}",
        ),
        (
            "gateway: {accounts: {b: {upstream: 'replay:ses-20260206-143022'}}}",
            "error: `gateway.accounts.b.upstream` cannot be a replay @ 'replay:ses-20260206-143022'",
        ),
        (
            "executors: {fallback: [x]}",
            "error: `executors.fallback[0]` is not a known executor, got `x` @ x",
        ),
        (
            "executors: {custom: {mine: {command: []}}}",
            "error: `executors.custom.mine.command` names no program @ {command: []}",
        ),
        (
            "executors: {custom: {codex: {command: [x]}}}",
            "error: `executors.custom.codex` is the name of a built-in executor @ {command: [x]}",
        ),
        (
            "gateway: {upstream: azure}",
            "error: `gateway.upstream` is not a known upstream, got `azure` @ azure",
        ),
        (
            "gateway: {upstream: 'https://u:p@x.com'}",
            "error: `gateway.upstream` contains a login, which does not belong in a file @ 'https://u:p@x.com'",
        ),
        (
            "gateway: {upstream: 'https://'}",
            "error: `gateway.upstream` is not a web address, got `https://` @ 'https://'",
        ),
        (
            "gateway: {upstream: 'http://x.com'}",
            "warning: `gateway.upstream` sends your key unencrypted @ 'http://x.com'",
        ),
        (
            "gateway: {upstream: 'script:'}",
            "error: `gateway.upstream` names no script file, got `script:` @ 'script:'",
        ),
        (
            "gateway: {upstream: 'replay:x'}",
            "error: `gateway.upstream` names no session, got `replay:x` @ 'replay:x'",
        ),
        (
            "gateway: {upstream: openai}",
            "warning: `gateway.credential_env` still names the key for Anthropic, `ANTHROPIC_API_KEY` @ openai",
        ),
        (
            "gateway: {prices: {llama: {input: -1, output: 2}}}",
            "error: `gateway.prices.llama.input` is no price, got `-1` @ -1",
        ),
        (
            "gateway: {prices: {llama: {input: 1}}}",
            "error: `gateway.prices.llama` needs a price for `input` and `output` @ {input: 1}",
        ),
        (
            "gateway: {credential_env: sk-ant-1}",
            "error: `gateway.credential_env` is not the name of an environment variable @ sk-ant-1",
        ),
        (
            "worktree: {copy: [/etc/passwd]}",
            "error: `worktree.copy[0]` must be relative to the repository, got `/etc/passwd` @ /etc/passwd",
        ),
        (
            "worktree: {share: [a], scratch: [a]}",
            "error: `worktree.scratch[0]` is shared as well @ a",
        ),
        (
            "permissions: {allowed_paths: ['src/[a']}",
            "error: `permissions.allowed_paths[0]` is not a valid pattern: unclosed character class; missing ']', got `src/[a` @ 'src/[a'",
        ),
        (
            "permissions: {allowed_paths: [src/]}",
            "error: `permissions.allowed_paths[0]` ends with `/`, so it matches no file, got `src/` @ src/",
        ),
        (
            "permissions: {allowed_paths: []}",
            "warning: `permissions.allowed_paths` is empty: agents can change no file @ -",
        ),
        (
            "permissions: {allowed_tools: []}",
            "error: `permissions.allowed_tools` is empty: agents can do nothing @ -",
        ),
        (
            "permissions: {allowed_tools: Read}",
            "error: `permissions.allowed_tools` must be a list, got `Read` @ Read",
        ),
        (
            "permissions: {allowed_tools: [A], blocked_tools: [A]}",
            "error: `permissions.allowed_tools[0]` is also blocked, got `A` @ A",
        ),
        (
            "permissions: {allowed_tools: [WebFetch]}",
            "error: `permissions.allowed_tools[0]` is blocked by default, got `WebFetch` @ WebFetch",
        ),
        (
            "permissions: {bash_rules: {allowed_commands: ['']}}",
            "error: `permissions.bash_rules.allowed_commands[0]` is empty @ ''",
        ),
        (
            "permissions: {bash_rules: {allowed_commands: [docker ps]}}",
            "warning: `permissions.bash_rules.allowed_commands[0]` can never run: the blocked pattern `docker` matches it @ docker ps",
        ),
        (
            "permissions: {bash_rules: {blocked_patterns: ['x*']}}",
            "error: `permissions.bash_rules.blocked_patterns[0]` matches every command @ 'x*'",
        ),
        (
            "validation: {commit_format: {example: nope}}",
            "error: `validation.commit_format.example` does not fit its own pattern @ nope",
        ),
        (
            "validation: {file_naming: {style: snakecase}}",
            "error: `validation.file_naming.style` must be `snake_case`, `camelCase`, `PascalCase` or `kebab-case`, got `snakecase` @ snakecase",
        ),
        (
            "validation: {require_tests: {enabled: true, source_patterns: []}}",
            "warning: `validation.require_tests.source_patterns` is empty, so no change is asked for tests @ true",
        ),
        (
            "validation: {require_tests: {test_patterns: []}}",
            "error: `validation.require_tests.test_patterns` is empty, so no change could bring the tests that are required @ -",
        ),
        (
            "merge: {target: trunk}",
            "error: `merge.target` must be `base` or `branch`, got `trunk` @ trunk",
        ),
        (
            "waves: {mode: fast}",
            "error: `waves.mode` must be `strict` or `pipelined`, got `fast` @ fast",
        ),
        (
            "hooks: {post_plan: 3}",
            "error: `hooks.post_plan` must be a text, got the number `3` @ 3",
        ),
        (
            "planning: {interactive: yes}",
            "error: `planning.interactive` must be `true` or `false`, got `yes` @ yes",
        ),
        (
            "beads: {decay_policy: {summarize_after_sessions: 0}}",
            "error: `beads.decay_policy.summarize_after_sessions` must be at least 1, got `0` @ 0",
        ),
    ] {
        assert_eq!(problems(&v2(text)), [problem], "{text}");
    }
}

#[test]
fn versions_are_explained() {
    assert_eq!(
        problems("project: {name: x}"),
        ["warning: `schema_version` is missing, so the file is read as version 1 @ -"]
    );
    assert_eq!(
        problems("schema_version: 3"),
        ["error: `schema_version` is newer than this program: it reads up to 2, got `3` @ 3"]
    );
    assert_eq!(
        problems("schema_version: 0"),
        ["error: `schema_version` must be 1 or 2, got `0` @ 0"]
    );
    assert_eq!(
        problems("schema_version: 1\nsandbox: {mode: auto}\nmerge: {target: base}\n"),
        [
            "error: `sandbox.mode` is not part of schema version 1 @ mode",
            "error: `merge` is not part of schema version 1 @ merge",
        ]
    );
}

#[test]
fn what_is_shown_can_be_read_again_and_means_the_same() {
    for text in [
        String::new(),
        "schema_version: 1\nlimits: {max_session_tokens: 5}\n".to_owned(),
        v2(
            "executors: {validator: mine, fallback: [embedded], custom: {mine: {command: [a, '--b'], dialect: claude-stream}}}",
        ),
        v2(
            "gateway: {accounts: {b: {upstream: 'https://b.example'}}}\nexecutors: {accounts: {codex: b}, at_most: {codex: 1}, models: {codex: m}}",
        ),
        v2(
            "validation: {commit_format: {pattern: '^\\d+ é'}}\npermissions: {blocked_tools: [Bash]}",
        ),
    ] {
        let file = read(text.as_bytes()).file.unwrap();
        let shown = yaml::to_string(&file).unwrap();
        let again = read(shown.as_bytes());
        assert_eq!(again.problems, [], "{shown}");
        assert_eq!(again.file.unwrap(), file);
        assert!(again.config.is_some());
    }
}

#[test]
fn executors_are_tried_in_order_without_repeats() {
    let rules = good(&v2(
        "executors: {default: codex, validator: mine, fallback: [claude, codex, embedded], \
         custom: {mine: {command: [mine]}}}",
    ))
    .rules();
    let names = |chain: &[ExecutorName]| {
        chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&rules.executors.worker), "codex claude embedded");
    assert_eq!(names(&rules.executors.validator), "mine claude codex embedded");
}

#[test]
fn an_executor_may_have_an_account_a_model_and_a_limit_of_its_own() {
    let config = good(&v2(
        "gateway: {record: true, accounts: {other: {upstream: openai, credential_env: B}}}\n\
         executors: {fallback: [codex], accounts: {codex: other}, models: {codex: gpt-5}, \
         at_most: {codex: 2}}",
    ));
    let (claude, codex) =
        (ExecutorName::new("claude").unwrap(), ExecutorName::new("codex").unwrap());
    let rules = config.rules();
    assert_eq!(rules.account_of(&claude).as_str(), "main");
    assert_eq!(rules.account_of(&codex).as_str(), "other");
    assert_eq!(rules.executor_caps[&codex], 2);
    assert_eq!(config.executors.models[&codex], "gpt-5");
    let main = config.gateway.with_account(rules.account_of(&claude));
    assert_eq!(
        (main.upstream, main.credential_env.as_str()),
        (Upstream::Anthropic, "ANTHROPIC_API_KEY")
    );
    let other = config.gateway.with_account(rules.account_of(&codex));
    assert_eq!((other.upstream, other.credential_env.as_str()), (Upstream::OpenAi, "B"));
    let keys: Vec<&str> = config.gateway.credential_variables().collect();
    assert_eq!(keys, ["ANTHROPIC_API_KEY", "B"]);
    assert!(other.record, "what is not said of an account is the same for all");
    // A replay is of everything.
    let replayed = Gateway {
        upstream: Upstream::Replay(SessionId::new("ses-20260206-143022").unwrap()),
        ..config.gateway
    };
    assert_eq!(replayed.with_account(rules.account_of(&codex)).upstream, replayed.upstream);
}

#[test]
fn the_schema_forbids_unknown_keys_everywhere_and_describes_every_key() {
    fn walk(value: &serde_json::Value) {
        if let Some(properties) = value.get("properties").and_then(|p| p.as_object()) {
            assert_eq!(value["additionalProperties"], false, "{value}");
            for (key, property) in properties {
                let described =
                    property.get("description").is_some() || property.get("$ref").is_some();
                assert!(described, "{key} has no description: {property}");
            }
        }
        match value {
            serde_json::Value::Object(map) => map.values().for_each(walk),
            serde_json::Value::Array(list) => list.iter().for_each(walk),
            _ => {}
        }
    }
    let schema = schema();
    walk(&schema);
    assert!(schema["$schema"].as_str().unwrap().contains("2020-12"));
    assert_eq!(schema["title"], "Blue Flame configuration (blueflame.yaml)");
    assert!(key_paths().contains(&"executors.custom.*.dialect".to_owned()));
}

#[test]
fn skills_that_cannot_be_given_are_said_where_they_are_written() {
    let skills = |yaml: &str| {
        let reading = read(format!("schema_version: 2\n{yaml}").as_bytes());
        let said: Vec<String> = reading
            .problems
            .iter()
            .map(|it| format!("{} {} / {}", it.path, it.message, it.hint.as_deref().unwrap_or("")))
            .collect();
        (reading.config.map(|config| config.skills), said.join("\n"))
    };
    let (config, said) = skills("superpowers: {skills: [brainstorm, superpowers:write-plan]}\n");
    let config = config.unwrap();
    assert_eq!(said, "");
    let planner: Vec<&str> = config.wanted.planner.iter().map(SkillName::as_str).collect();
    assert_eq!(planner, ["brainstorming", "writing-plans"]);
    assert_eq!(config.renamed[0], ("brainstorm".to_owned(), "brainstorming"));
    for (yaml, expected, usable) in [
        (
            "superpowers: {skills: [using-git-worktrees]}\n",
            "superpowers.skills[0] is never given to agents: it has agents manage branches",
            true,
        ),
        (
            "skills: {worker: [subagent-driven-development]}\n",
            "skills.worker[0] is never given to agents: it has agents start agents",
            true,
        ),
        ("superpowers: {skills: [test-driven-developmnt]}\n", "did you mean `test-driven-d", true),
        ("superpowers: {skills: [mine]}\n", "name it under `skills.worker`", true),
        ("skills: {worker: [House_Style]}\n", "is no name of a skill, got `House_Style`", false),
        ("skills: {folders: [skills]}\n", "there is `skills.trust_repository`", false),
    ] {
        let (config, said) = skills(yaml);
        assert!(said.contains(expected), "{yaml}: {said}");
        assert_eq!(config.is_some(), usable, "{yaml}");
        let worktrees = |it: &Skills| it.wanted.worker.iter().any(|it| it.as_str().contains("git"));
        assert!(!config.is_some_and(|config| worktrees(&config)), "{yaml}");
    }
}
