//! `blueflame revert`: takes a landed changeset back, by the way that work
//! takes: checked, landed, published.

use crate::stderr::eprintln;
use blueflame_core::ids::{ChangesetId, SessionId};
use blueflame_core::state::State;
use blueflame_core::yaml::closest;

use super::asking::{self, Enter, Said};
use super::publish;
use super::run::runtime;
use crate::cli::{Common, Revert};
use crate::config_file;
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::history;
use crate::narrate::{plain, short};
use crate::report;
use crate::session::Session;
use crate::session::reverting::Proposal;
use crate::store::Store;

/// So many files are shown before the question.
const SHOWN: usize = 20;

pub fn run(arguments: &Revert, common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let store = loaded.store();
    let (id, changeset) = find(&store, &arguments.changeset)?;
    let branch = loaded.config.project.base_branch.clone();
    let directory = store.session(&id);
    let store = store.for_writing(Remote::Refuse)?;
    let mut session = Session::take_up(loaded, &store, directory)?;
    let ask = |proposal: &Proposal| {
        show(proposal);
        if arguments.yes { Ok(()) } else { confirm(&changeset) }
    };
    let taken_back = runtime()?.block_on(session.take_back(&changeset, ask));
    session.put_down()?;
    let taken_back = taken_back?;
    let (name, commit) = (&taken_back.changeset, short(taken_back.commit.as_str()));
    eprintln!("{changeset} is taken back by {name}, commit {commit}");
    match &taken_back.published {
        Some(published) => publish::tell(published, &branch)?,
        None => eprintln!("`{branch}` is left to you: `git merge refs/blueflame/{id}/integration`"),
    }
    eprintln!("if you want it again: `blueflame revert {id}/{name}`");
    Ok(())
}

fn confirm(changeset: &ChangesetId) -> Result<(), Failure> {
    match asking::confirm(&format!("take {changeset} back?"), Enter::MeansNo) {
        Said::Yes => Ok(()),
        Said::No => Err(Failure::new(Kind::Declined, "nothing was changed")),
        Said::Nobody => {
            let message = format!("nobody is there to say whether to take `{changeset}` back");
            Err(Failure::new(Kind::Declined, message)
                .hint(format!("`blueflame revert --yes {changeset}` does it without asking")))
        }
    }
}

fn show(proposal: &Proposal) {
    let Proposal { undo, view } = proposal;
    let count = view.files.len();
    let files = if count == 1 { "file" } else { "files" };
    let (more, less) = (view.insertions, view.deletions);
    eprintln!("taking back {} changes {count} {files}, +{more} -{less}:", undo.name());
    for file in view.files.iter().take(SHOWN) {
        let lines = file.lines.map_or_else(
            || "not text".to_owned(),
            |(added, removed)| format!("+{added} -{removed}"),
        );
        eprintln!("  {}  {lines}", plain(&file.path.to_string_lossy()));
    }
    if count > SHOWN {
        eprintln!("  and {} more", count - SHOWN);
    }
}

/// The session and the changeset that a person means by `auth.c1` or by
/// `ses-20260206-143022/auth.c1`.
fn find(store: &Store, asked: &str) -> Result<(SessionId, ChangesetId), Failure> {
    let (session, name) = match asked.rsplit_once('/') {
        Some((session, name)) => (Some(session), name),
        None => (None, asked),
    };
    let changeset = ChangesetId::new(name).map_err(|error| {
        Failure::new(Kind::Usage, error).hint("`blueflame log` shows the changesets that landed")
    })?;
    let sessions = match session {
        Some(session) => vec![store.resolve(Some(session))?.id().clone()],
        None => store.sessions()?,
    };
    let (mut landed, mut others, mut stands) = (Vec::new(), Vec::new(), None);
    for id in sessions {
        let state = history::fold(&store.session(&id).journal(), None, |_| {})?.state;
        if state.has_landed(&changeset) {
            landed.push(id);
            continue;
        }
        stands = stands.or_else(|| stands_elsewhere(&state, &changeset));
        others.extend(state.landed_changesets().map(|it| format!("{id}/{it}")));
    }
    match landed.as_slice() {
        [one] => Ok((one.clone(), changeset)),
        [] => Err(not_landed(&changeset, stands, &others)),
        several => {
            let names: Vec<String> = several.iter().map(|id| format!("`{id}/{name}`")).collect();
            Err(Failure::new(Kind::Usage, format!("`{name}` landed in several sessions"))
                .hint(format!("say which: {}", names.join(", "))))
        }
    }
}

/// How a changeset of a session stands that did not land.
fn stands_elsewhere(state: &State, changeset: &ChangesetId) -> Option<String> {
    let row = report::changeset_rows(state).into_iter().find(|row| row.id == changeset)?;
    Some(format!("in {} it stands so: {}", state.session, plain(&row.stands)))
}

fn not_landed(changeset: &ChangesetId, stands: Option<String>, landed: &[String]) -> Failure {
    let failure = Failure::new(Kind::Usage, format!("no landed changeset is called `{changeset}`"));
    if let Some(stands) = stands {
        return failure.hint(stands);
    }
    let ends = landed.iter().filter_map(|name| name.rsplit_once('/')).map(|(_, end)| end);
    match (closest(changeset.as_str(), ends), landed.first()) {
        (Some(meant), _) => failure.hint(format!("did you mean `{meant}`?")),
        (None, Some(newest)) => failure.hint(format!("the newest that landed is `{newest}`")),
        (None, None) => failure.hint("nothing has landed yet"),
    }
}
