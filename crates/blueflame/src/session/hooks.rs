//! The person's own commands, run at certain moments in a task beside the
//! session: with the person's environment, a time limit, and an end that is
//! sure. What comes of one is a fact, and changes nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use blueflame_core::event::Event;
use blueflame_core::hook::{HookResult, Occasion};
use blueflame_core::ids::TaskId;
use blueflame_core::state::State;
use blueflame_core::state::task::Step;

use super::Session;
use super::checking::surroundings;
use super::post::Occurrence;
use super::site::Site;
use crate::checks::command::{self, CommandExit, CommandResult, Order, Surroundings};
use crate::sandbox::Terms;
use crate::store::SessionDir;

/// What a hook is told about a reason, which may be as long as a log.
const LONGEST_VALUE: usize = 4 << 10;

/// Variables that would point git at another repository than the one the hook
/// is run in.
const MISLEADING: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];

pub fn run(session: &Session, number: u32, occasion: &Occasion) {
    let (site, post) = session.parts();
    let mut stop = session.stop.subscribe();
    let told = told(&site, &session.state, occasion);
    let hook = occasion.hook();
    let kept = output_file(&site.session, number, occasion);
    tokio::spawn(async move {
        let result = match (site.config.hooks.command(hook), around(&site, told)) {
            (Some(command), Ok(around)) => {
                let (directory, timeout) = (&*site.repository, site.config.hooks.timeout);
                let order = Order { command, directory, timeout, keep: Some(&kept) };
                result(command::run(order, &around, &mut stop).await)
            }
            // The configuration is another one than when the session began.
            (None, _) => failed("the configuration has no such command any more"),
            (_, Err(why)) => failed(&why),
        };
        if let HookResult::Failed { reason } = &result {
            let kept = kept.display();
            let text = format!("the hook {} {reason}; its output is in {kept}", hook.name());
            post.send(Occurrence::Warning(text));
        }
        post.fact(Event::HookFinished { number, result });
    });
}

/// Where all of a hook's output is kept, or the first 64 MiB of it.
pub fn output_file(session: &SessionDir, number: u32, occasion: &Occasion) -> PathBuf {
    let name = format!("{:03}-{}.log", number + 1, occasion.hook().name());
    session.path().join("hooks").join(name)
}

fn result(result: CommandResult) -> HookResult {
    match result.exit {
        CommandExit::Passed => HookResult::Passed,
        CommandExit::Stopped => HookResult::CutShort,
        exit => failed(&exit.to_string()),
    }
}

fn failed(reason: &str) -> HookResult {
    HookResult::Failed { reason: reason.to_owned() }
}

/// A hook belongs to the person, and finds what they have around them, but for
/// the key of the model: a log of the environment must not give it away.
fn around(site: &Site, told: BTreeMap<String, String>) -> Result<Surroundings, String> {
    let own = surroundings(site)?;
    fs::create_dir_all(site.session.path().join("hooks")).map_err(|error| error.to_string())?;
    let mut variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !site.config.gateway.credential_variables().any(|key| key == name))
        .filter(|(name, _)| !MISLEADING.contains(&name.as_str()))
        .collect();
    variables.insert("TERM".to_owned(), "dumb".to_owned());
    variables.extend(told);
    let home = std::env::var_os("HOME").map_or(own.home, PathBuf::from);
    // It is for what the person does by hand otherwise, so nothing confines it.
    Ok(Surroundings { home, variables, sandbox: Terms::default(), ..own })
}

/// The documented variables; `docs/hooks.md` lists them.
fn told(site: &Site, state: &State, occasion: &Occasion) -> BTreeMap<String, String> {
    let mut told: Vec<(&str, String)> = vec![
        ("EVENT", occasion.hook().name().to_owned()),
        ("SESSION", site.session.id().to_string()),
        ("SESSION_DIR", site.session.path().display().to_string()),
        ("REPOSITORY", site.repository.display().to_string()),
        ("BASE_BRANCH", site.config.project.base_branch.clone()),
        ("CYCLE", state.cycle.to_string()),
    ];
    let named = |wanted: &dyn Fn(Step) -> bool| {
        let tasks = state.board.tasks().iter().filter(|task| wanted(task.step()));
        list(tasks.map(|task| &task.spec.id))
    };
    match occasion {
        Occasion::PlanApproved { .. } => {
            let file = site.repository.join(site.config.project.tasks_file.as_str());
            told.push(("TASKS", named(&|step| step != Step::Replaced)));
            told.push(("TASKS_FILE", file.display().to_string()));
        }
        Occasion::ValidationDue { .. } => {
            told.push(("TASKS", named(&|step| matches!(step, Step::Done | Step::Accepted))));
        }
        Occasion::Landed { changeset, commit, published } => {
            let tasks = state.merging.get(changeset).map(|it| list(&it.tasks));
            told.push(("CHANGESET", changeset.to_string()));
            told.push(("COMMIT", commit.to_string()));
            told.push(("TASKS", tasks.unwrap_or_default()));
            told.push(("PUBLISHED", u8::from(*published).to_string()));
        }
        Occasion::TaskFailed { task, attempt, reason } => {
            told.push(("TASK", task.to_string()));
            told.push(("ATTEMPT", attempt.to_string()));
            told.push(("REASON", shortened(reason)));
        }
    }
    told.into_iter().map(|(name, value)| (format!("BLUEFLAME_{name}"), value)).collect()
}

fn list<'a>(tasks: impl IntoIterator<Item = &'a TaskId>) -> String {
    tasks.into_iter().map(TaskId::as_str).collect::<Vec<_>>().join(" ")
}

/// Fit for a variable: not too long, and without what ends one.
fn shortened(text: &str) -> String {
    let mut text = text.replace('\0', "");
    if let Some((at, _)) = text.char_indices().find(|(at, c)| at + c.len_utf8() > LONGEST_VALUE) {
        text.truncate(at);
    }
    text
}
