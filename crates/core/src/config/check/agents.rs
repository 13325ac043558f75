//! Executors, models and the sandbox.

use std::collections::BTreeMap;

use super::super::{BUILT_IN_EXECUTORS, CustomExecutor, Executors, Sandbox, SandboxMode, file};
use super::values::Check;
use crate::ids::{AccountName, ExecutorName};
use crate::rules::PerRole;
use crate::yaml::{Spanned, one_of, path_below};

/// Where people keep credentials, below the home directory.
const SECRETS: [&str; 16] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".claude",
    ".codex",
    ".git-credentials",
    ".config/gh",
    ".config/gcloud",
    ".local/share/opencode",
    ".cargo/credentials.toml",
];

pub(super) fn models(check: Check<'_>, file: &file::Models) -> PerRole<String> {
    let model = |role: &str, name| model(check, &format!("models.{role}"), name);
    PerRole {
        planner: model("planner", &file.planner),
        worker: model("worker", &file.worker),
        validator: model("validator", &file.validator),
        merger: model("merger", &file.merger),
    }
}

fn model(check: Check<'_>, path: &str, name: &Spanned<String>) -> String {
    let bad = name.is_empty()
        || name.starts_with('-')
        || name.chars().any(|c| c.is_whitespace() || c.is_control());
    if bad {
        let message = if name.is_empty() {
            "is empty".to_owned()
        } else {
            format!("is not a model name, got `{}`", name.value)
        };
        check.error(path, name, message, "write an alias such as `sonnet`, or a full name");
    }
    name.value.clone()
}

pub(super) fn executors(
    check: Check<'_>,
    file: &file::Executors,
    gateway: &file::Gateway,
) -> Option<Executors> {
    let custom = custom(check, file);
    let own = file.custom.keys().map(String::as_str);
    let own = own.filter(|name| !BUILT_IN_EXECUTORS.contains(name));
    let known: Vec<&str> = BUILT_IN_EXECUTORS.into_iter().chain(own).collect();
    let named = |path: &str, name: &Spanned<String>| {
        if !known.contains(&name.as_str()) {
            let hint = match check.problems.closest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("use {}, or define it in executors.custom", one_of(known.clone())),
            };
            check.error(
                path,
                name,
                format!("is not a known executor, got `{}`", name.value),
                &hint,
            );
            return None;
        }
        ExecutorName::new(name.value.clone()).ok()
    };
    let default = named("executors.default", &file.default);
    let fallback: Vec<ExecutorName> = file
        .fallback
        .iter()
        .enumerate()
        .filter_map(|(index, name)| named(&format!("executors.fallback[{index}]"), name))
        .collect();
    let chain = |role: &str, own: &Option<Spanned<String>>| {
        let first = match own {
            Some(name) => named(&format!("executors.{role}"), name),
            None => default.clone(),
        };
        let mut chain: Vec<ExecutorName> = first.into_iter().collect();
        for name in &fallback {
            if !chain.contains(name) {
                chain.push(name.clone());
            }
        }
        chain
    };
    let chains = PerRole {
        planner: chain("planner", &file.planner),
        worker: chain("worker", &file.worker),
        validator: chain("validator", &file.validator),
        merger: chain("merger", &file.merger),
    };
    let mut accounts = BTreeMap::new();
    for (name, account) in &file.accounts {
        let path = path_below("executors.accounts", name);
        let executor = named(&path, &Spanned { value: name.clone(), span: account.span });
        let there =
            account.value == AccountName::MAIN || gateway.accounts.contains_key(&account.value);
        if !there {
            let hint = match check
                .problems
                .closest(account, gateway.accounts.keys().map(String::as_str))
            {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "define it in gateway.accounts".to_owned(),
            };
            let message = format!("is not a known account, got `{}`", account.value);
            check.error(&path, account, message, &hint);
        }
        if let (Some(executor), Ok(account)) = (executor, AccountName::new(account.value.clone())) {
            accounts.insert(executor, account);
        }
    }
    let mut models = BTreeMap::new();
    for (name, written) in &file.models {
        let path = path_below("executors.models", name);
        let model = model(check, &path, written);
        if let Some(executor) = named(&path, &Spanned { value: name.clone(), span: written.span }) {
            models.insert(executor, model);
        }
    }
    let mut at_most = BTreeMap::new();
    for (name, agents) in &file.at_most {
        let path = path_below("executors.at_most", name);
        if agents.value == 0 {
            let hint = "leave the executor out of the others to do without it";
            check.error(&path, agents, "must be at least 1, got `0`", hint);
        }
        if let Some(executor) = named(&path, &Spanned { value: name.clone(), span: agents.span }) {
            at_most.insert(executor, agents.value);
        }
    }
    Some(Executors { chains, custom: custom?, accounts, models, at_most })
}

fn custom(
    check: Check<'_>,
    file: &file::Executors,
) -> Option<BTreeMap<ExecutorName, CustomExecutor>> {
    let mut all = BTreeMap::new();
    let mut good = true;
    for (name, executor) in &file.custom {
        let path = path_below("executors.custom", name);
        match ExecutorName::new(name.clone()) {
            Err(bad) => {
                check.error(&path, executor, format!("is not a good name: {}", bad.rule), "");
                good = false;
            }
            Ok(_) if BUILT_IN_EXECUTORS.contains(&name.as_str()) => {
                let hint = "choose another name";
                check.error(&path, executor, "is the name of a built-in executor", hint);
                good = false;
            }
            Ok(name) => {
                let custom = CustomExecutor {
                    command: executor.command.iter().map(|word| word.value.clone()).collect(),
                    dialect: executor.dialect.value,
                };
                all.insert(name, custom);
            }
        }
        if executor.command.first().is_none_or(|program| program.trim().is_empty()) {
            let hint = "add `command: [\"my-agent\", \"--json\"]`";
            check.error(&format!("{path}.command"), executor, "names no program", hint);
            good = false;
        }
        for (index, word) in executor.command.iter().enumerate() {
            check.no_strange_characters(&format!("{path}.command[{index}]"), word);
        }
    }
    good.then_some(all)
}

pub(super) fn sandbox(check: Check<'_>, file: &file::Sandbox) -> Sandbox {
    if file.allow_network.value {
        check.error(
            "sandbox.allow_network",
            &file.allow_network,
            "must be false: agents never have network access",
            "agents reach their model through the gateway and need nothing else; remove the line",
        );
    }
    if file.mode.value == SandboxMode::Off {
        check.warning(
            "sandbox.mode",
            &file.mode,
            "is off: agents can read and change everything that you can",
            "use `auto` unless this machine is itself a sandbox",
        );
    }
    for (index, path) in file.read.iter().enumerate() {
        if let Some((message, hint)) = unreadable(path) {
            let message = format!("{message}, got `{}`", path.value);
            check.error(&format!("sandbox.read[{index}]"), path, message, hint);
        }
    }
    let most_mb = 16_777_216;
    Sandbox {
        mode: file.mode.value,
        read: file.read.iter().map(|path| path.value.clone()).collect(),
        max_cpu_seconds: check.range("sandbox.max_cpu_seconds", &file.max_cpu_seconds, 1..=604_800),
        max_memory_mb: check.range("sandbox.max_memory_mb", &file.max_memory_mb, 64..=most_mb),
        max_file_size_mb: check.range(
            "sandbox.max_file_size_mb",
            &file.max_file_size_mb,
            1..=most_mb,
        ),
        max_open_files: check.range("sandbox.max_open_files", &file.max_open_files, 64..=1_048_576),
        max_disk_mb: check.range("sandbox.max_disk_mb", &file.max_disk_mb, 16..=most_mb),
        process_limit: file.process_limit.value,
    }
}

/// Whether a path is a home directory, or in or above a place of credentials.
pub fn holds_credentials(path: &str) -> bool {
    unreadable(path).is_some()
}

/// Why agents may not read a path, if so.
fn unreadable(path: &str) -> Option<(&'static str, &'static str)> {
    let narrower = "name the directory that is needed, such as `~/.cargo/registry`";
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if !path.starts_with('/') && !path.starts_with("~/") && path != "~" {
        return Some(("must be absolute or start with `~/`", narrower));
    }
    if parts.contains(&"..") || path.chars().any(char::is_control) {
        return Some(("must not contain `..`", narrower));
    }
    // What is left of the path below a home directory.
    let below_home = match parts.as_slice() {
        ["~" | "root", rest @ ..] | ["home" | "Users", _, rest @ ..] => rest.join("/"),
        [] | ["home" | "Users"] => String::new(),
        _ => return None,
    };
    let holds = |secret: &&str| {
        below_home.is_empty()
            || below_home == **secret
            || below_home.starts_with(&format!("{secret}/"))
            || secret.starts_with(&format!("{below_home}/"))
    };
    SECRETS.iter().any(holds).then_some(("holds credentials", narrower))
}

#[cfg(test)]
mod tests {
    use super::unreadable;

    #[test]
    fn directories_with_credentials_stay_closed() {
        for open in ["~/.rustup", "~/.cargo/registry", "/usr/share/dict", "/home/me/.npm/_cacache"]
        {
            assert_eq!(unreadable(open), None, "{open}");
        }
        for closed in [
            "~",
            "~/",
            "/",
            "/home",
            "/home/me",
            "/root",
            "~/.ssh",
            "~/.ssh/id_rsa",
            "~/.config",
            "/home/me/.aws",
            "~/.cargo",
            "~/.claude/",
            "relative",
            "~/../x",
            "/Users/me/.kube",
            "~other/x",
            "",
        ] {
            assert!(unreadable(closed).is_some(), "{closed} was opened");
        }
    }
}
