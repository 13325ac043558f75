//! The gateway: accounts at providers, and what models cost.

use std::collections::BTreeMap;

use super::super::{Account, Gateway, ModelPrice, Upstream, file};
use super::values::Check;
use crate::ids::{AccountName, SessionId};
use crate::money::Usd;
use crate::yaml::{Spanned, path_below};

pub(super) fn gateway(check: Check<'_>, file: &file::Gateway) -> Option<Gateway> {
    let main = file::Account {
        upstream: file.upstream.clone(),
        credential_env: file.credential_env.clone(),
        passthrough_auth: file.passthrough_auth.clone(),
        ca_file: file.ca_file.clone(),
    };
    let main = account(check, "gateway", &main);
    let (prices, accounts) = (prices(check, file), accounts(check, file));
    let Account { upstream, credential_env, passthrough_auth, ca_file } = main?;
    Some(Gateway {
        upstream,
        credential_env,
        passthrough_auth,
        ca_file,
        record: file.record.value,
        prices: prices?,
        accounts: accounts?,
    })
}

fn accounts(check: Check<'_>, file: &file::Gateway) -> Option<BTreeMap<AccountName, Account>> {
    let mut all = BTreeMap::new();
    let mut good = true;
    for (name, written) in &file.accounts {
        let path = path_below("gateway.accounts", name);
        let account = account(check, &path, written);
        if let Some(Account { upstream: Upstream::Replay(_), .. }) = account {
            let hint = "write it into `gateway.upstream`; it is for all accounts there";
            check.error(&format!("{path}.upstream"), &written.upstream, "cannot be a replay", hint);
        }
        match AccountName::new(name.clone()) {
            Err(bad) => {
                check.error(&path, written, format!("is not a good name: {}", bad.rule), "");
                good = false;
            }
            Ok(name) if name.is_main() => {
                let hint = "choose another name";
                check.error(&path, written, "is what `gateway` itself describes", hint);
                good = false;
            }
            Ok(name) => match account {
                Some(account) => drop(all.insert(name, account)),
                None => good = false,
            },
        }
    }
    good.then_some(all)
}

fn account(check: Check<'_>, path: &str, file: &file::Account) -> Option<Account> {
    let upstream = upstream(check, &format!("{path}.upstream"), &file.upstream);
    let name = &file.credential_env;
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let variable = format!("{path}.credential_env");
    if !valid {
        // The value may be a key that was pasted here; it is not repeated.
        check.error(
            &variable,
            name,
            "is not the name of an environment variable",
            "write a name such as ANTHROPIC_API_KEY; the key itself does not belong in this file",
        );
    }
    if upstream == Some(Upstream::OpenAi) && name.span.is_none() {
        check.warning(
            &variable,
            &file.upstream,
            "still names the key for Anthropic, `ANTHROPIC_API_KEY`",
            "add `credential_env: OPENAI_API_KEY`",
        );
    }
    Some(Account {
        upstream: upstream?,
        credential_env: name.value.clone(),
        passthrough_auth: file.passthrough_auth.value,
        ca_file: file.ca_file.as_ref().map(|path| path.value.clone()),
    })
}

fn prices(check: Check<'_>, file: &file::Gateway) -> Option<BTreeMap<String, ModelPrice>> {
    let mut all = BTreeMap::new();
    let mut good = true;
    for (model, written) in &file.prices {
        let path = path_below("gateway.prices", model);
        let dollars = |key: &str, value: &Spanned<f64>| {
            Usd::from_dollars(value.value).or_else(|| {
                let path = format!("{path}.{key}");
                check.error(&path, value, format!("is no price, got `{}`", value.value), "");
                None
            })
        };
        let optional = |key: &str, value: &Option<Spanned<f64>>| match value {
            None => Some(None),
            Some(value) => dollars(key, value).map(Some),
        };
        let price = (
            dollars("input", &written.input),
            dollars("output", &written.output),
            optional("cache_read", &written.cache_read),
            optional("cache_write", &written.cache_write),
        );
        if let (Some(input), Some(output), Some(cache_read), Some(cache_write)) = price {
            // A price of nothing would take the brake off without a word.
            if written.input.span.is_none() || written.output.span.is_none() {
                let hint = "write both, 0 for a model that costs nothing";
                check.error(&path, written, "needs a price for `input` and `output`", hint);
                good = false;
            }
            all.insert(model.clone(), ModelPrice { input, output, cache_read, cache_write });
        } else {
            good = false;
        }
    }
    good.then_some(all)
}

fn upstream(check: Check<'_>, path: &str, written: &Spanned<String>) -> Option<Upstream> {
    let text = written.trim();
    let refuse = |message: &str, hint: &str| {
        check.error(path, written, format!("{message}, got `{text}`"), hint);
        None
    };
    if let Some(file) = text.strip_prefix("script:") {
        return if file.trim().is_empty() {
            refuse("names no script file", "write `script:FILE`")
        } else {
            Some(Upstream::Script(file.to_owned()))
        };
    }
    if let Some(session) = text.strip_prefix("replay:") {
        return SessionId::new(session).map(Upstream::Replay).ok().or_else(|| {
            refuse("names no session", "write `replay:` and an id like ses-20260206-143022")
        });
    }
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            let hint = "name the key's variable in credential_env";
            check.error(path, written, "contains a login, which does not belong in a file", hint);
            return None;
        }
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return refuse("is not a web address", "write it like `https://api.example.com`");
        }
        if text.starts_with("http://") && !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
            check.warning(path, written, "sends your key unencrypted", "use `https://`");
        }
        return Some(Upstream::Url(text.to_owned()));
    }
    match text {
        "anthropic" => Some(Upstream::Anthropic),
        "openai" => Some(Upstream::OpenAi),
        _ => refuse(
            "is not a known upstream",
            "use `anthropic`, `openai`, `https://...`, `script:FILE` or `replay:SESSION`",
        ),
    }
}
