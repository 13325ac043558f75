//! What a session has come to so far, remembered between its cycles.

use tokio::task::spawn_blocking;

use super::Session;
use super::post::Occurrence;
use crate::memory::{Keeper, Terms};
use crate::store::Store;

/// Remembers what the last cycle left, beside the session. If that fails, the end
/// of the session makes it good.
pub fn after_cycle(session: &Session) {
    let (site, post) = session.parts();
    let Some(config) = site.config.memory.clone().filter(|it| it.archive_after_wave) else {
        return;
    };
    spawn_blocking(move || {
        let kept = Keeper::of(&Store::in_common_dir(&site.common)).catch_up(&Terms::of(&config));
        let warnings = match kept {
            Ok(caught_up) => caught_up.warnings,
            Err(error) => vec![format!("what the last cycle left to know was not saved: {error}")],
        };
        for warning in site.recall.warned().news(warnings) {
            post.send(Occurrence::Warning(warning));
        }
    });
}
