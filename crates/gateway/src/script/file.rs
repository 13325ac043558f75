//! A script as people write it. Everything is optional here, so that the check
//! can say what is missing in which reply.

use blueflame_core::yaml::{DurationText, Spanned};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptFile {
    pub replies: Option<Spanned<Vec<Spanned<ReplyFile>>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyFile {
    pub when: Option<WhenFile>,
    pub say: Option<Spanned<String>>,
    pub call: Option<Vec<Spanned<CallFile>>>,
    pub output: Option<Spanned<Value>>,
    pub usage: Option<Spanned<UsageFile>>,
    pub delay: Option<Spanned<DurationText>>,
    pub pause: Option<Spanned<DurationText>>,
    pub fail: Option<Spanned<FailFile>>,
    pub cut_after: Option<Spanned<u32>>,
    pub hang_after: Option<Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WhenFile {
    pub role: Option<String>,
    pub task: Option<String>,
    pub attempt: Option<u32>,
    pub turn: Option<u32>,
    pub model: Option<String>,
    pub contains: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallFile {
    pub tool: Option<Spanned<String>>,
    pub input: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageFile {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailFile {
    pub status: Option<Spanned<u16>>,
    pub retry_after: Option<Spanned<DurationText>>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub message: Option<String>,
}
