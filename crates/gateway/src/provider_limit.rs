//! When a provider wants a pause, and until when.

use hyper::HeaderMap;
use jiff::{SignedDuration, Timestamp};

/// No limit is longer than a week; a later time is a mistake or malice.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 8);

/// A limit that is reached.
#[derive(Debug)]
pub(crate) struct Reached {
    /// When it ends, as far as the answer tells.
    pub(crate) until: Option<Timestamp>,
}

/// Whether the answer says that a limit is reached.
pub(crate) fn reached(status: u16, headers: &HeaderMap, now: Timestamp) -> Option<Reached> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let rejected = text("anthropic-ratelimit-unified-status") == Some("rejected");
    if status != 429 && !rejected {
        return None;
    }
    let reset = text("anthropic-ratelimit-unified-reset").and_then(|text| {
        let seconds = text.parse().ok();
        seconds.map_or_else(|| text.parse().ok(), |seconds| Timestamp::from_second(seconds).ok())
    });
    let after = text("retry-after").and_then(|text| match text.parse::<u32>() {
        Ok(seconds) => now.checked_add(SignedDuration::from_secs(i64::from(seconds))).ok(),
        Err(_) => jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp()),
    });
    // OpenAI says how long each of its limits lasts, such as `6m0s`; the one that
    // is used up counts, and if none says so, the longest.
    let lasts = |kind: &str| {
        let wait: SignedDuration = text(&format!("x-ratelimit-reset-{kind}"))?.parse().ok()?;
        let used_up = text(&format!("x-ratelimit-remaining-{kind}")) == Some("0");
        Some((used_up, now.checked_add(wait).ok()?))
    };
    let lifted = ["requests", "tokens"].into_iter().filter_map(lasts).max();
    let after = after.or(lifted.map(|(_, until)| until));
    // The reset of a subscription is the truth; `retry-after` may be shorter.
    let until = if rejected { reset.or(after) } else { after.or(reset) };
    let latest = now.checked_add(LONGEST).unwrap_or(Timestamp::MAX);
    Some(Reached { until: until.map(|until| until.clamp(now, latest)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn until(status: u16, headers: &[(&'static str, &'static str)]) -> String {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        match reached(status, &headers, now) {
            None => "no limit".to_owned(),
            Some(Reached { until: None }) => "some time".to_owned(),
            Some(Reached { until: Some(until) }) => until.to_string(),
        }
    }

    #[test]
    fn a_limit_is_seen_with_its_end_however_it_is_written() {
        assert_eq!(until(200, &[("retry-after", "5")]), "no limit");
        assert_eq!(until(529, &[("retry-after", "5")]), "no limit");
        assert_eq!(until(429, &[]), "some time");
        assert_eq!(until(429, &[("retry-after", "soon")]), "some time");
        assert_eq!(until(429, &[("retry-after", "90")]), "2026-11-15T12:01:30Z");
        assert_eq!(
            until(429, &[("retry-after", "Sun, 15 Nov 2026 12:30:00 GMT")]),
            "2026-11-15T12:30:00Z"
        );
        let reset = ("anthropic-ratelimit-unified-reset", "1794751200");
        let rejected = ("anthropic-ratelimit-unified-status", "rejected");
        assert_eq!(until(429, &[reset]), "2026-11-15T14:00:00Z");
        assert_eq!(until(429, &[reset, rejected, ("retry-after", "3")]), "2026-11-15T14:00:00Z");
        assert_eq!(until(200, &[reset, rejected]), "2026-11-15T14:00:00Z");
    }

    #[test]
    fn the_limit_that_is_used_up_is_the_one_to_wait_for() {
        let requests = ("x-ratelimit-reset-requests", "6m0s");
        let tokens = ("x-ratelimit-reset-tokens", "1.5s");
        let none_left = ("x-ratelimit-remaining-tokens", "0");
        assert_eq!(until(429, &[requests, tokens]), "2026-11-15T12:06:00Z");
        assert_eq!(until(429, &[requests, tokens, none_left]), "2026-11-15T12:00:01.5Z");
        assert_eq!(until(429, &[requests, ("retry-after", "9")]), "2026-11-15T12:00:09Z");
        assert_eq!(until(429, &[("x-ratelimit-reset-tokens", "soon")]), "some time");
        assert_eq!(until(200, &[requests]), "no limit");
    }

    #[test]
    fn times_that_make_no_sense_are_brought_into_range() {
        let past = "Mon, 16 Nov 2020 12:30:00 GMT";
        assert_eq!(until(429, &[("retry-after", past)]), "2026-11-15T12:00:00Z");
        assert_eq!(until(429, &[("retry-after", "4000000000")]), "2026-11-23T12:00:00Z");
    }
}
