//! Claude without us: started as an attempt starts it, with the same arguments,
//! but with nobody who judges its calls, and no sandbox.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use blueflame::executor::{self, Ground, Order};
use serde_json::{Value, json};

/// Where a claude runs, and what it talks to.
pub struct Place<'p> {
    pub program: &'p Path,
    pub root: &'p Path,
    pub workspace: &'p Path,
    pub model: Model<'p>,
}

/// How it reaches its model.
#[derive(Clone, Copy)]
pub enum Model<'p> {
    At(&'p str),
    /// Through a gateway that wants to see this token.
    Behind {
        socket: &'p Path,
        token: &'p str,
    },
}

/// Starts it and tells it what to do. Its input stays open in the child: it leaves
/// when that is closed.
pub fn start(order: &Order, settings: &Value, place: &Place<'_>) -> Child {
    let (home, tmp) = (place.root.join("home"), place.root.join("tmp"));
    for path in [&home, &tmp] {
        fs::create_dir_all(path).unwrap();
    }
    let (gateway, token) = match place.model {
        Model::At(_) => (Path::new("/nonexistent"), "none"),
        Model::Behind { socket, token } => (socket, token),
    };
    let ground = Ground {
        program: place.program,
        home: &home,
        tmp: &tmp,
        files: place.root,
        workspace: place.workspace,
        gateway,
        port: None,
        hook: None,
        token,
        login: None,
    };
    let mut launch = executor::named("claude").unwrap().launch(order, &ground);
    for (path, text) in &launch.files {
        fs::write(path, text).unwrap();
    }
    let at = launch.arguments.iter().position(|it| it == "--settings").unwrap();
    launch.arguments[at + 1] = settings.to_string().into();
    if let Model::At(address) = place.model {
        launch.environment.remove("ANTHROPIC_UNIX_SOCKET");
        launch.environment.insert("ANTHROPIC_BASE_URL".to_owned(), address.into());
    }
    // In a session of its own, as the launcher of an attempt puts it: the scheduler
    // shares the processors out between sessions.
    let mut child = Command::new("setsid")
        .arg(&launch.program)
        .args(&launch.arguments)
        .env_clear()
        .envs(environment(&home, &tmp))
        .envs(&launch.environment)
        .current_dir(place.workspace)
        .stdin(Stdio::piped())
        .stdout(fs::File::create(place.root.join("output.jsonl")).unwrap())
        .stderr(fs::File::create(place.root.join("errors")).unwrap())
        .spawn()
        .unwrap();
    let message = json!({"role": "user", "content": order.prompt});
    let line = json!({"type": "user", "message": message});
    child.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    child
}

fn environment(home: &Path, tmp: &Path) -> [(&'static str, OsString); 10] {
    [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", home.into()),
        ("TMPDIR", tmp.into()),
        ("LANG", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_AUTHOR_NAME", "Ada".into()),
        ("GIT_AUTHOR_EMAIL", "ada@example.com".into()),
        ("GIT_COMMITTER_NAME", "Ada".into()),
        ("GIT_COMMITTER_EMAIL", "ada@example.com".into()),
    ]
}
