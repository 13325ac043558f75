//! `blueflame init`: a configuration for this repository, written once.
//!
//! It never replaces a file, and writes nothing else.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::stderr::eprintln;
use blueflame_core::config;

use super::asking::{self, Enter, Said};
use super::here;
use crate::cli::{Common, Init};
use crate::config_file::{self, DEFAULT_NAME};
use crate::executor::{self, find};
use crate::failure::{Failure, Kind};
use crate::git::{Git, GitError};
use crate::narrate::plain;
use crate::starter::{self, Chosen};
use crate::store::StoreError;
use crate::survey::Survey;

pub fn run(arguments: &Init, common: &Common) -> Result<(), Failure> {
    let root = root(&here()?)?;
    let path = common.config.clone().unwrap_or_else(|| root.join(DEFAULT_NAME));
    if fs::symlink_metadata(&path).is_ok() {
        return already_there(&path);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let survey = Survey::of(&root, home.as_deref()).map_err(StoreError::from)?;
    let chosen = show(&survey);
    let text = starter::text(&survey, &chosen, elsewhere(&path, &root)?.as_deref());
    let reading = config::read(text.as_bytes());
    if let Err(problems) = reading.into_result() {
        let problem = problems.first().map(|it| format!(": `{}` {}", it.path, it.message));
        let message = format!("no good configuration came about{}", problem.unwrap_or_default());
        return Err(Failure::new(Kind::Internal, message)
            .hint("write one by hand; blueflame.example.yaml has every key"));
    }
    if !arguments.yes {
        ask(&path)?;
    }
    write(&path, &text)?;
    let loaded = config_file::load(Some(&path))?;
    eprintln!("wrote     {}", loaded.name);
    eprintln!("next      look it over, commit it, and start with `blueflame run`");
    Ok(())
}

/// The root of the work tree, if there is one to work with.
fn root(here: &Path) -> Result<PathBuf, Failure> {
    let git = Git::in_dir(here);
    let root = match git.top_level() {
        Ok(root) => root,
        Err(GitError::Failed { .. }) if git.is_bare().unwrap_or(false) => {
            let message = format!("`{}` is a bare repository: it has no files", here.display());
            return Err(Failure::new(Kind::Missing, message)
                .hint("clone it, and call `blueflame init` in the clone"));
        }
        Err(GitError::Failed { .. }) if git.common_dir().is_ok() => {
            let message = format!("`{}` is inside of git's own directory", here.display());
            return Err(Failure::new(Kind::Missing, message).hint("go to the files of the project"));
        }
        Err(error) => return Err(StoreError::from(error).into()),
    };
    if !git.has_commit().map_err(StoreError::from)? {
        return Err(Failure::new(Kind::Missing, "the repository has no commit to start from")
            .hint("make a first one: `git add --all`, then `git commit -m \"first\"`"));
    }
    Ok(root)
}

/// Nothing to do, if the file is good.
fn already_there(path: &Path) -> Result<(), Failure> {
    match config_file::load(Some(path)) {
        Ok(loaded) => {
            eprintln!("{} is there already, and it is good; nothing was changed", loaded.name);
            Ok(())
        }
        Err(failure) => Err(failure.hint(
            "the file was there already and was not changed; mend it, or move it away first",
        )),
    }
}

/// Shows what was found, and which agent program that leads to.
fn show(survey: &Survey) -> Chosen {
    let listed = |list: &[String], none: &str| match list {
        [] => none.to_owned(),
        list => plain(&list.join(", ")).into_owned(),
    };
    let languages = survey.languages.join(", ");
    eprintln!("branch    {}", plain(&survey.base_branch));
    let kind = if languages.is_empty() { "nothing that is known here" } else { &languages };
    eprintln!("project   {kind}");
    eprintln!("tests     {}", listed(&survey.tests, "none found; nothing will check what lands"));
    eprintln!("lints     {}", listed(&survey.lints, "none found"));
    eprintln!("writable  {}", listed(&survey.allowed, "nothing"));
    if !survey.scratch.is_empty() {
        eprintln!("output    {}", listed(&survey.scratch, ""));
    }
    if !survey.share.is_empty() {
        eprintln!("shared    {}", listed(&survey.share, ""));
    }
    let chosen = choose();
    show_others();
    for note in &survey.notes {
        eprintln!("note      {}", plain(note));
    }
    chosen
}

/// claude if it is there and runs, and else what is always there.
fn choose() -> Chosen {
    let claude = executor::named("claude");
    let found = claude.and_then(|claude| {
        let program = find::program(claude)?;
        Some((find::look(claude, &program), program))
    });
    match found {
        Some((find::Found::Usable { version, warning }, program)) => {
            eprintln!("agent     claude {} ({})", plain(&version), program.display());
            if let Some(warning) = warning {
                eprintln!("note      {}", plain(&warning));
            }
            Chosen { executor: "claude", why: "claude is installed here." }
        }
        Some((find::Found::Broken { why }, program)) => {
            eprintln!("agent     embedded; {} does not run: {}", program.display(), plain(&why));
            Chosen { executor: "embedded", why: "claude did not run here." }
        }
        None => {
            eprintln!("agent     embedded; claude is not installed");
            Chosen { executor: "embedded", why: "claude was not found here." }
        }
    }
}

/// Agent programs that are here as well. None of them is chosen: they need a
/// provider that speaks as they do.
fn show_others() {
    for other in executor::ALL {
        let name = other.name();
        let Some(program) =
            find::program(other).filter(|_| !["claude", "embedded"].contains(&name))
        else {
            continue;
        };
        if let find::Found::Usable { version, .. } = find::look(other, &program) {
            let (version, path) = (plain(&version), other.speaks().path());
            eprintln!("also      {name} {version}, for a provider that serves {path}");
        }
    }
}

/// The repository as the file has to name it, if it is not its directory.
fn elsewhere(path: &Path, root: &Path) -> Result<Option<PathBuf>, Failure> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let directory = parent.canonicalize().map_err(|error| {
        let message = format!("the directory `{}` cannot be used: {error}", parent.display());
        Failure::new(Kind::Usage, message).hint("check the path behind --config")
    })?;
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    Ok((directory != root).then_some(root))
}

/// Asks whether to write; whoever is not there to ask has to say so before.
fn ask(path: &Path) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    match asking::confirm(&format!("write {name}?"), Enter::MeansYes) {
        Said::Yes => Ok(()),
        Said::No => Err(Failure::new(Kind::Declined, "nothing was written")),
        Said::Nobody => {
            let message = format!("nobody is there to say whether to write `{name}`");
            Err(Failure::new(Kind::Declined, message)
                .hint("`blueflame init --yes` writes it without asking"))
        }
    }
}

/// Makes the file, and leaves one alone that came about meanwhile.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        Failure::new(Kind::Missing, message).hint("check who may write in that directory")
    })
}
