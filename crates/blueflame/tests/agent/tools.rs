//! The tools, from the model's call to what is on the disk.

use std::fs;

use serde_json::json;

use crate::stage::{Stage, is_alive, until_gone};

#[test]
fn a_task_is_worked_on_with_all_tools_up_to_a_commit() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0, contains: "please greet", role: worker}
    say: I will look around.
    call:
      - {tool: Glob, input: {pattern: "*.txt"}}
      - {tool: Read, input: {file_path: notes.txt}}
      - {tool: Grep, input: {pattern: "nam.", output_mode: content}}
  - when: {turn: 1, contains: "1\tyour name\n2\tis Ada"}
    call:
      - {tool: Write, input: {file_path: src/hello.txt, content: "hello world\n"}}
      - {tool: Edit, input: {file_path: ./src/hello.txt, old_string: world, new_string: Ada}}
      - tool: Bash
        input: {command: "git init -q . && git add src && git -c user.name=A -c user.email=a@example.com commit -qm 'feat: greet' && cat src/hello.txt && git status --short"}
  - when: {turn: 2, contains: "exit code 0\nhello Ada\n?? notes.txt"}
    say: Done.
    usage: {input: 10, output: 5, cache_read: 3, cache_write: 2}
"#,
    );
    let workspace = stage.workspace();
    fs::write(workspace.join("notes.txt"), "your name\nis Ada\n").unwrap();
    let system = stage.file("system", "blueflame: role=worker task=task-001 attempt=1\nBe brief.");
    let mut agent = stage.agent(&["--system-prompt-file", system.to_str().unwrap()]);
    agent.prompt("please greet");
    let result = agent.allow_all();
    assert_eq!(agent.finish(), 0);

    assert_eq!(fs::read_to_string(workspace.join("src/hello.txt")).unwrap(), "hello Ada\n");
    let init = &agent.events[1];
    assert_eq!(
        (&init["type"], &init["subtype"], &init["model"], &init["agent"], &init["cwd"]),
        (
            &json!("system"),
            &json!("init"),
            &json!("m1"),
            &json!("blueflame"),
            &json!(workspace.to_str().unwrap())
        )
    );
    assert_eq!(init["tools"], json!(["Read", "Write", "Edit", "Glob", "Grep", "Bash"]));
    let told = agent.told();
    assert_eq!(told[0], ("notes.txt".to_owned(), false));
    assert_eq!(told[2], ("notes.txt:1:your name".to_owned(), false));

    // Each call was judged before it was made, by its absolute path.
    let judged: Vec<_> = agent
        .events
        .iter()
        .filter(|event| event["request"]["subtype"] == "hook_callback")
        .map(|event| &event["request"])
        .collect();
    assert_eq!(judged.len(), 6);
    let written = workspace.join("src/hello.txt");
    for at in [3, 4] {
        let input = &judged[at]["input"];
        assert_eq!(input["tool_input"]["file_path"], written.to_str().unwrap());
        assert_eq!(input["hook_event_name"], "PreToolUse");
        assert_eq!(input["session_id"], init["session_id"]);
        assert_eq!(input["tool_use_id"], judged[at]["tool_use_id"]);
        assert_eq!(judged[at]["callback_id"], "cb1");
    }
    let kinds: Vec<&str> =
        agent.events[2..6].iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["assistant", "assistant", "assistant", "assistant"], "one event a block");

    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["result"], &result["num_turns"]),
        (&json!("success"), &json!(false), &json!("Done."), &json!(3))
    );
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["permission_denials"], json!([]));
    assert!(result["modelUsage"]["m1"]["inputTokens"].as_u64().unwrap() > 10);
    assert_eq!(result["modelUsage"]["m1"]["cacheReadInputTokens"], 3);
    assert_eq!(result["modelUsage"]["m1"]["cacheCreationInputTokens"], 2);

    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0]["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(requests[2]["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn several_prompts_are_one_conversation_with_a_result_each() {
    let stage = Stage::new(
        "replies: [{when: {turn: 0, contains: first}, say: one}, {when: {turn: 1, contains: second}, say: two}]",
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("the first");
    assert_eq!(agent.allow_all()["result"], "one");
    agent.prompt("the second");
    let result = agent.allow_all();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("two"), &json!(1)));
    // The run's own figures, and those of the whole process.
    let (run, all) =
        (&result["usage"]["output_tokens"], &result["modelUsage"]["m1"]["outputTokens"]);
    assert!(run.as_u64() < all.as_u64(), "{result}");
    assert_eq!(agent.of_subtype("init").len(), 2);
    assert_eq!(agent.finish(), 0);
}

#[test]
fn unknown_tools_and_inputs_that_do_not_fit_are_explained_to_the_model() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: WebFetch, input: {url: x}}
      - {tool: Write, input: {file_path: a}}
      - {tool: Bash, input: {command: "true"}}
      - {tool: Read, input: {file_path: none.txt}}
      - {tool: StructuredOutput, input: {}}
  - say: I see.
"#,
    );
    let mut agent = stage.agent(&["--tools", "Read,Write"]);
    agent.prompt("go");
    assert_eq!(agent.allow_all()["result"], "I see.");
    let told = agent.told();
    let none = stage.workspace().join("none.txt");
    for (at, expected) in [
        "there is no tool `WebFetch`; there are Read, Write".to_owned(),
        "the input does not fit Write: missing field `content`".to_owned(),
        "there is no tool `Bash`; there are Read, Write".to_owned(),
        format!("there is no file `{}`", none.display()),
        "there is no tool `StructuredOutput`; there are Read, Write".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(told[at], (expected, true));
    }
    let offered: Vec<String> = stage.requests()[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(offered, ["Read", "Write"]);
    assert_eq!(agent.finish(), 0);
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_its_children() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: Bash, input: {command: "trap '' TERM; (trap '' TERM; echo $BASHPID > pid; while :; do sleep 1; done) & wait", timeout: 3000}}
  - when: {contains: "the command was stopped: it took longer than 3000 ms"}
    say: too slow
"#,
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    assert_eq!(agent.allow_all()["result"], "too slow");
    let id = fs::read_to_string(stage.workspace().join("pid")).unwrap();
    until_gone(id.trim());
}

#[test]
fn commands_do_not_see_what_opens_the_gateway() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: Bash, input: {command: "env"}}
      - {tool: Bash, input: {command: "tr '\\0' '\\n' < /proc/$PPID/environ"}}
  - say: ok
"#,
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    agent.allow_all();
    let told = agent.told();
    assert!(told[0].0.contains("HOME=") && !told[0].0.contains("ANTHROPIC_"), "{}", told[0].0);
    // Root can read whatever it likes.
    if !rustix::process::getuid().is_root() {
        assert!(told[1].0.contains("Permission denied"), "{}", told[1].0);
    }
}

#[test]
fn when_the_agent_is_stopped_its_command_ends_too() {
    for how in ["TERM", "stdout"] {
        let stage = Stage::new(
            r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: Bash, input: {command: "echo $$ > pid.new && mv pid.new pid; sleep 300"}}
"#,
        );
        let mut agent = stage.agent(&[]);
        agent.prompt("go");
        let question = agent.question();
        agent.answer(&question, "allow", "");
        let path = stage.workspace().join("pid");
        while !path.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let id = fs::read_to_string(&path).unwrap();
        assert!(is_alive(id.trim()));
        if how == "TERM" {
            let agent_id = rustix::process::Pid::from_raw(i32::try_from(agent.id()).unwrap());
            rustix::process::kill_process(agent_id.unwrap(), rustix::process::Signal::TERM)
                .unwrap();
            assert_eq!(agent.exit_code(), 143);
        } else {
            agent.close_stdout();
            assert_eq!(agent.exit_code(), 1);
        }
        until_gone(id.trim());
    }
}
