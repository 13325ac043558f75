//! What a configuration does without that would make a session safer. It is
//! recorded when the session begins, and said again at its end.

use blueflame_core::config::Config;
use blueflame_core::money::Budget;

use crate::sandbox::Boundary;

pub fn settings(config: &Config, boundary: Boundary) -> Vec<String> {
    let mut weaker: Vec<String> = boundary.weaknesses().map(str::to_owned).collect();
    let mut note = |text: &str| weaker.push(text.to_owned());
    if config.validation.acceptance.is_empty() {
        note("no acceptance commands: validators alone judge finished tasks");
    }
    if config.merge.verify.is_empty() {
        note("no merge.verify: merged trees land without a check");
    }
    if !config.validation.enforce_file_scope {
        note("file scope is not enforced: workers may write outside their files");
    }
    if config.limits.session_budget == Budget::Unlimited {
        note("no session budget: nothing stops the cost of the whole session");
    }
    let accounts = config.gateway.accounts.values();
    if config.gateway.passthrough_auth || accounts.clone().any(|it| it.passthrough_auth) {
        note("passthrough_auth: agents carry a login of their own");
    }
    weaker
}
