//! `blueflame status`: where a session stands, from any other terminal.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use blueflame_core::ids::SessionId;
use blueflame_core::state::State;
use jiff::Timestamp;

use super::{named_config, place};
use crate::cli::{Common, Status};
use crate::columns;
use crate::failure::{Failure, Kind};
use crate::history;
use crate::progress::painter::{Painter, Size, can_paint};
use crate::repo_lock;
use crate::report::{self, Scene};
use crate::stdout;
use crate::store::Store;

/// How often it is looked who is there, and times are shown anew.
const TICK: Duration = Duration::from_secs(1);

pub fn run(arguments: &Status, common: &Common) -> Result<(), Failure> {
    let place = place(named_config(common)?.as_ref())?;
    let store = Store::find(&place)?;
    let directory = store.resolve(arguments.session.as_deref())?;
    if arguments.summary {
        return stdout::write(&report::summary::page(&directory.journal())?);
    }
    if arguments.watch {
        return watch(&store, &directory.journal(), arguments);
    }
    let state = history::fold(&directory.journal(), None, |_| {})?.state;
    let scene = scene(&store, &state.session)?;
    stdout::write(&shown(&state, &scene, arguments)?)
}

fn scene(store: &Store, session: &SessionId) -> Result<Scene, Failure> {
    Ok(Scene::of_now(Timestamp::now(), repo_lock::look(store)?, session))
}

fn shown(state: &State, scene: &Scene, arguments: &Status) -> Result<String, Failure> {
    if !arguments.json {
        return Ok(report::page(state, scene));
    }
    let document = serde_json::to_string(&report::document(state, scene))
        .map_err(|error| Failure::new(Kind::Internal, error))?;
    Ok(format!("{document}\n"))
}

/// Shows the state again whenever it has changed, until the session ends.
fn watch(store: &Store, journal: &Path, arguments: &Status) -> Result<(), Failure> {
    let out = io::stdout();
    let mut painter = (!arguments.json && can_paint(&out)).then(|| Painter::new(out, true));
    let mut last: Option<(Instant, Scene)> = None;
    history::follow(journal, TICK, |news| {
        let looked = last.as_ref().map(|(at, _)| at.elapsed());
        if !news.grown && looked.is_some_and(|ago| ago < TICK) {
            return ControlFlow::Continue(());
        }
        let scene = match scene(store, &news.state.session) {
            Ok(scene) => scene,
            Err(failure) => return ControlFlow::Break(Err(failure)),
        };
        let first = last.is_none();
        let moved = last.as_ref().is_none_or(|(_, old)| old.orchestrator != scene.orchestrator);
        let written = match &mut painter {
            Some(painter) => paint(painter, &report::page(news.state, &scene)),
            None if news.grown || moved => print(news.state, &scene, arguments, first),
            None => ControlFlow::Continue(()),
        };
        last = Some((Instant::now(), scene));
        match written {
            ControlFlow::Continue(()) if news.state.ended().is_some() => ControlFlow::Break(Ok(())),
            written => written,
        }
    })?
}

/// A page in place of the last one. What does not fit is left out at its end,
/// and the last one stays on the screen.
fn paint(painter: &mut Painter<io::Stdout>, page: &str) -> ControlFlow<Result<(), Failure>> {
    let size = Size::of(io::stdout());
    let mut lines: Vec<String> = page.lines().map(|line| columns::clip(line, size.width)).collect();
    let most = size.height.saturating_sub(1).max(1);
    if lines.len() > most {
        let rest = lines.len() - (most - 1);
        lines.truncate(most - 1);
        lines.push(format!("({rest} more lines; `blueflame status` shows all)"));
    }
    match painter.repaint(&lines, size) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Err(Failure::new(
            Kind::Internal,
            format!("standard output cannot be written: {error}"),
        ))),
    }
}

/// A block for each change, with a blank line between two.
fn print(
    state: &State,
    scene: &Scene,
    arguments: &Status,
    first: bool,
) -> ControlFlow<Result<(), Failure>> {
    let gap = if first || arguments.json { "" } else { "\n" };
    match shown(state, scene, arguments) {
        Ok(text) => stdout::write_on(&format!("{gap}{text}")),
        Err(failure) => ControlFlow::Break(Err(failure)),
    }
}
