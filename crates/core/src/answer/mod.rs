//! What a validator and a merger return: the schema they are given, and the
//! reader of their answer.
//!
//! An answer is read strictly: an unknown key, an unknown status or an answer
//! that contradicts itself makes it unusable, and every reason is told at once,
//! so that a second try can do better. A planner's answer is a plan and has its
//! own reader in [`plan`](crate::plan).

mod merger;
mod verdict;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use merger::{MergerReport, merger_report_schema, read_merger_report};
pub use verdict::{read_verdict, verdict_schema};

use crate::yaml::{Document, Limits};

/// More than anyone wants to read about one task or one changeset.
const LONGEST: Limits = Limits { bytes: 256 * 1024, depth: 8, nodes: 10_000 };

/// Fills a type from an answer, or says everything that is in the way.
fn read<T: DeserializeOwned>(answer: &Value) -> Result<T, Vec<String>> {
    if !answer.is_object() {
        return Err(vec!["the answer is not an object".into()]);
    }
    let text = answer.to_string();
    if text.len() > LONGEST.bytes {
        let (most, size) = (LONGEST.bytes, text.len());
        return Err(vec![format!("the answer may have {most} bytes, got `{size}`")]);
    }
    let told = |problems: Vec<crate::yaml::Problem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let document = Document::parse(text.as_bytes(), LONGEST).map_err(told)?;
    let (read, problems) = document.read::<T>();
    match (read, told(problems.into_sorted())) {
        (Some(read), problems) if problems.is_empty() => Ok(read),
        (_, problems) => Err(problems),
    }
}

/// The entries that say something.
fn spoken(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().filter(|text| !text.trim().is_empty()).collect()
}
