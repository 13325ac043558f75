//! `blueflame cleanup`: removes what sessions that ended have left behind.

use std::collections::BTreeMap;

use crate::stderr::eprintln;
use blueflame_core::event::Event;
use blueflame_core::ids::SessionId;
use jiff::{SignedDuration, Timestamp};

use crate::amounts;
use crate::cleanup::{Fate, Item, Reason, Sweep, Unlanded};
use crate::cli::{Cleanup, Common};
use crate::config_file;
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::narrate::plain;
use crate::repo_lock::{self, Holder, LockError, Presence, RepoLock};
use crate::session;
use crate::store::Store;

pub fn run(arguments: &Cleanup, common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let (config, repository) = (&loaded.config, &loaded.repository);
    // Without it nobody can tell what is there besides.
    let base = loaded.base.clone().ok_or_else(|| {
        Failure::new(Kind::Internal, "where the base branch is cannot be told")
            .hint("nothing was removed; `git status` must work here")
    })?;
    let store = loaded.store();
    let lock = if arguments.dry_run { only_look(&store)? } else { hold(&store)? };
    let sweep = Sweep {
        common: loaded.common.clone(),
        trees: repository.join(config.project.worktree_dir.as_str()),
        base,
        now: Timestamp::now(),
        keep_logs: SignedDuration::from_hours(24 * i64::from(arguments.keep_logs)),
        keep_log_bytes: arguments.keep_logs_mb.saturating_mul(1_000_000),
        unlanded: if arguments.unlanded { Unlanded::Goes } else { Unlanded::Stays },
        store: &store,
        config,
    };
    let items = sweep.look()?;
    let done = if arguments.dry_run {
        show(&items);
        Ok(())
    } else {
        remove(&sweep, &items)
    };
    if let Some(lock) = lock {
        lock.release()?;
    }
    done
}

/// Whoever only looks takes no lock, and is turned away like everyone else.
fn only_look(store: &Store) -> Result<Option<RepoLock>, Failure> {
    match repo_lock::look(store)? {
        Presence::Nobody => Ok(None),
        Presence::Somebody(holder) => Err(LockError::Held { holder }.into()),
    }
}

/// Nothing of a session is touched without the lock. Where there is no session,
/// there is nothing of one.
fn hold(store: &Store) -> Result<Option<RepoLock>, Failure> {
    let Some(newest) = store.begun()?.into_iter().next() else { return Ok(None) };
    let writable = store.for_writing(Remote::Refuse)?;
    Ok(Some(RepoLock::take(&writable, &Holder::this_process(newest, Timestamp::now()))?))
}

fn show(items: &[Item]) {
    let mut bytes = 0;
    for item in items {
        match &item.fate {
            Fate::Goes => {
                bytes += item.bytes;
                eprintln!("would remove  {}", described(item));
            }
            Fate::Stays(reason) => tell_kept(item, reason),
        }
    }
    if items.iter().any(|item| item.fate == Fate::Goes) {
        eprintln!("nothing was removed; it would free {}", amounts::size(bytes));
    } else {
        eprintln!("there is nothing to remove");
    }
    mention_unlanded(items);
}

fn remove(sweep: &Sweep<'_>, items: &[Item]) -> Result<(), Failure> {
    let mut removed: BTreeMap<Option<&SessionId>, (Vec<String>, u64)> = BTreeMap::new();
    let mut failed = 0;
    for item in items {
        match &item.fate {
            Fate::Goes => match sweep.remove(item) {
                Ok(()) => {
                    eprintln!("removed       {}", described(item));
                    let (names, bytes) = removed.entry(item.session.as_ref()).or_default();
                    names.push(item.name.clone());
                    *bytes += item.bytes;
                }
                Err(failure) => {
                    failed += 1;
                    let _ = failure.report();
                }
            },
            Fate::Stays(reason) => tell_kept(item, reason),
        }
    }
    let bytes = removed.values().map(|(_, bytes)| bytes).sum();
    for (id, (removed, bytes)) in &removed {
        let Some(id) = id else { continue };
        let directory = sweep.store.session(id);
        // One that never began has no journal.
        if directory.journal().exists() {
            let event = Event::SessionCleaned { removed: removed.clone(), bytes: *bytes };
            session::note(&directory, &event)?;
        }
    }
    if removed.is_empty() && failed == 0 {
        eprintln!("there is nothing to remove");
    } else {
        eprintln!("freed {}", amounts::size(bytes));
    }
    mention_unlanded(items);
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(Kind::Incomplete, "not everything could be removed")
            .hint("when the reason is gone, `blueflame cleanup` goes on")),
    }
}

fn tell_kept(item: &Item, reason: &Reason) {
    let id = item.session.as_ref().map_or_else(String::new, ToString::to_string);
    let why = match reason {
        Reason::CanGoOn => format!("it can go on: `blueflame resume {id}`"),
        Reason::Errand => "something was cut short: `blueflame publish` or `revert` again".into(),
        Reason::Unlanded => "it did not land".into(),
        Reason::Unpublished => format!("not on the base branch: `blueflame publish {id}`"),
        Reason::Unknown => "nothing is known of that session".into(),
        Reason::Replayed => "the configuration replays that session".into(),
        Reason::Unreadable(error) => plain(error).into_owned(),
    };
    eprintln!("kept          {}; {why}", described(item));
}

fn described(item: &Item) -> String {
    let whose = item.session.as_ref().map_or_else(String::new, |id| format!(" of {id}"));
    let size =
        if item.bytes == 0 { String::new() } else { format!(", {}", amounts::size(item.bytes)) };
    format!("{}{whose}{size}", plain(&item.name))
}

fn mention_unlanded(items: &[Item]) {
    let kept = |item: &Item| matches!(item.fate, Fate::Stays(Reason::Unlanded | Reason::Unknown));
    if items.iter().any(kept) {
        eprintln!("hint: `blueflame cleanup --unlanded` removes work that did not land as well");
    }
}
