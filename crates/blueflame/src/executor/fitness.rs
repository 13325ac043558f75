//! Whether an executor can work with what it would have to ask.

use blueflame_core::config::{Gateway, Upstream};

use super::Executor;

/// Why an executor cannot work with what it would have to ask, if so. It is found
/// before it is started, so that another one can step in.
pub fn unfit(executor: &dyn Executor, gateway: &Gateway, key: Option<&str>) -> Option<String> {
    let name = executor.name();
    if gateway.passthrough_auth && !executor.takes_login() {
        let why = "takes no login: `gateway.passthrough_auth` is for claude";
        return Some(format!("the executor `{name}` {why}"));
    }
    if let Some(why) = cannot_ask(executor, &gateway.upstream) {
        return Some(why);
    }
    let provider = matches!(gateway.upstream, Upstream::Anthropic | Upstream::OpenAi);
    let variable = &gateway.credential_env;
    (provider && !gateway.passthrough_auth && key.is_none())
        .then(|| format!("the provider of `{name}` needs a key, and `{variable}` is not set"))
}

/// Why an executor cannot be sent to a provider, if so.
fn cannot_ask(executor: &dyn Executor, upstream: &Upstream) -> Option<String> {
    let (name, path) = (executor.name(), executor.speaks().path());
    let served = *upstream != Upstream::Anthropic || path == "/v1/messages";
    (!served).then(|| {
        format!(
            "the executor `{name}` cannot ask Anthropic: set `gateway.upstream` to `openai` or to \
             an address that serves `{path}`"
        )
    })
}
