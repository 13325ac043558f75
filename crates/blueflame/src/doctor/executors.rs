//! The executors that there are: whether each can be used here, and what it can do.

use blueflame_core::config::{Config, Gateway, Upstream};
use blueflame_core::ids::{ExecutorName, Role};
use serde_json::{Map, Value};

use super::Finding;
use crate::columns::{Side, Table};
use crate::executor::abilities::{FACETS, LOGIN};
use crate::executor::custom::Custom;
use crate::executor::{self, Chosen, Executor, find};

/// An executor that was looked for.
#[derive(Debug)]
pub struct Looked {
    name: ExecutorName,
    known: Chosen,
    found: Result<Usable, Lacking>,
    /// Where its login comes from, and whether it is there.
    login: String,
}

#[derive(Debug)]
struct Usable {
    version: String,
    place: String,
    warning: Option<String>,
}

#[derive(Debug)]
struct Lacking {
    /// For a table.
    word: &'static str,
    says: String,
    fix: String,
}

/// Looks for everything that comes with Blue Flame, and for what the configuration
/// describes. Each program is asked for its version once.
pub fn look(config: Option<&Config>) -> Vec<Looked> {
    let ours = executor::ALL.into_iter().map(Chosen::Ours);
    let custom = config.into_iter().flat_map(|it| &it.executors.custom);
    let own = custom.map(|(name, it)| Chosen::Own(Custom::new(name.as_str(), it)));
    ours.chain(own).filter_map(|known| look_for(known, config)).collect()
}

/// All names of executors are fit for a configuration.
fn look_for(known: Chosen, config: Option<&Config>) -> Option<Looked> {
    let name = ExecutorName::new(known.name()).ok()?;
    let login = config.map(|config| login(&*known, &gateway_of(&name, config)));
    let login = login.unwrap_or_else(|| "unknown".to_owned());
    Some(Looked { name, found: look_at(&*known), known, login })
}

fn look_at(known: &dyn Executor) -> Result<Usable, Lacking> {
    let lacking = |word, says| Lacking { word, says, fix: known.remedy().to_owned() };
    let program = find::program(known)
        .ok_or_else(|| lacking("not installed", "is not installed, or not in PATH".to_owned()))?;
    match find::look(known, &program) {
        find::Found::Broken { why } => {
            Err(lacking("does not run", format!("{} does not run: {why}", program.display())))
        }
        find::Found::Usable { version, warning } => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let lacks = find::missing_helpers(known, &path).into_iter().map(|(helper, tools)| {
                format!("without `{helper}` in PATH it has no {}", tools.join(" and "))
            });
            let warnings: Vec<String> = warning.into_iter().chain(lacks).collect();
            let warning = (!warnings.is_empty()).then(|| warnings.join("\n"));
            Ok(Usable { version, place: program.display().to_string(), warning })
        }
    }
}

/// What an executor asks, with the account that it has.
fn gateway_of(name: &ExecutorName, config: &Config) -> Gateway {
    config.gateway.with_account(config.executors.account_of(name))
}

/// As far as it can be told without using it.
fn login(known: &dyn Executor, gateway: &Gateway) -> String {
    let variable = &gateway.credential_env;
    let there = std::env::var(variable).is_ok_and(|key| !key.trim().is_empty());
    let there = if there { "set" } else { "not set" };
    match gateway.upstream {
        Upstream::Script(_) | Upstream::Replay(_) => "none needed".to_owned(),
        _ if gateway.passthrough_auth && !known.takes_login() => "cannot take yours".to_owned(),
        _ if gateway.passthrough_auth => format!("yours, ${variable} is {there}"),
        Upstream::Anthropic | Upstream::OpenAi | Upstream::Url(_) => {
            format!("${variable} is {there}")
        }
    }
}

/// Each executor that some role may use, and whether it can.
pub fn findings(config: &Config, looked: &[Looked]) -> Vec<Finding> {
    let chains = Role::ALL.map(|role| (role, config.executors.chains.of(role)));
    let mut names: Vec<&ExecutorName> = Vec::new();
    for name in chains.iter().flat_map(|(_, chain)| chain.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let here = |name: &ExecutorName| looked.iter().find(|it| it.name == *name);
    let wanted: Vec<&Looked> = names.into_iter().filter_map(here).collect();
    // What a key is worth is said where accounts are.
    let unserved =
        |it: &Looked| executor::fitness::unfit(&*it.known, &gateway_of(&it.name, config), Some(""));
    let usable = |name: &ExecutorName| {
        here(name).is_some_and(|it| it.found.is_ok() && unserved(it).is_none())
    };
    let finding = |it: &&Looked| {
        let subject = format!("executor {}", it.name);
        let mine = || chains.iter().filter(|(_, chain)| chain.contains(&it.name));
        let lacking = |says: &str, fix: &str| {
            if mine().all(|(_, chain)| chain.iter().any(usable)) {
                let says = format!("{says}; another one steps in");
                Finding::warning(subject.clone(), says, Some(fix))
            } else {
                Finding::missing(subject.clone(), says, fix)
            }
        };
        match (unserved(it), &it.found) {
            (Some(says), _) => lacking(&says, "set `gateway.upstream`, or choose another executor"),
            (None, Err(Lacking { says, fix, .. })) => lacking(says, fix),
            (None, Ok(Usable { version, place, warning })) => {
                let roles: Vec<String> = mine().map(|(role, _)| role.to_string()).collect();
                let says = format!("{version} at {place}, for {}", roles.join(", "));
                match warning {
                    Some(warning) => Finding::warning(subject, format!("{says}\n{warning}"), None),
                    None => Finding::good(subject, says),
                }
            }
        }
    };
    wanted.iter().map(finding).collect()
}

/// What there is to know of an executor, in rows.
fn rows(looked: &Looked) -> Vec<(&'static str, String)> {
    let version = match &looked.found {
        Ok(usable) => usable.version.clone(),
        Err(lacking) => lacking.word.to_owned(),
    };
    let mut rows = vec![("version", version)];
    for facet in FACETS.iter().chain([&LOGIN]) {
        rows.push((facet.what, (facet.of)(&*looked.known)));
    }
    rows.push(("login", looked.login.clone()));
    rows
}

/// All of them side by side, for people.
pub fn page(looked: &[Looked]) -> String {
    let all: Vec<Vec<(&str, String)>> = looked.iter().map(rows).collect();
    let names = looked.iter().map(|it| it.name.as_str());
    let headings = std::iter::once("executor").chain(names).map(|name| (name, Side::Left));
    let mut table = Table::with(headings);
    for (at, (what, _)) in all.first().into_iter().flatten().enumerate() {
        let cells = all.iter().map(|rows| rows[at].1.clone());
        table.row(std::iter::once((*what).to_owned()).chain(cells));
    }
    table.lines().into_iter().map(|line| line + "\n").collect()
}

/// The same for programs.
pub fn document(looked: &[Looked]) -> Value {
    let one = |it: &Looked| {
        let rows = rows(it).into_iter().map(|(what, told)| (key(what), Value::String(told)));
        let name = std::iter::once(("executor".to_owned(), it.name.as_str().into()));
        Value::Object(name.chain(rows).collect::<Map<String, Value>>())
    };
    Value::Array(looked.iter().map(one).collect())
}

/// What a row is called where no blanks may be.
fn key(what: &str) -> String {
    what.replace(['\'', '.'], "_").replace(' ', "_")
}
