//! Whether a failed request is made again, and when.

use std::time::Duration;

use super::failure::{Failure, FailureKind, Reached};

/// Further tries after the first.
pub(in crate::agent) const MOST_RETRIES: u32 = 4;

/// A longer wait than this is not waited for: the attempt process can do
/// better things with the time.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The tries of one request.
#[derive(Debug, Default)]
pub(in crate::agent) struct Tries {
    retries: u32,
    /// Answers that broke off after a whole block.
    late_breaks: u32,
}

/// What to do after a failure.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::agent) enum Next {
    Again { retry: u32, after: Duration },
    GiveUp,
}

impl Tries {
    pub(in crate::agent) fn after(&mut self, failure: &Failure, base: Duration) -> Next {
        if failure.for_good || !may_pass(failure) || self.retries >= MOST_RETRIES {
            return Next::GiveUp;
        }
        if failure.reached == Reached::Block {
            // What was produced is paid for: once more, but not over and over.
            if self.late_breaks > 0 {
                return Next::GiveUp;
            }
            self.late_breaks += 1;
        }
        let after = match failure.retry_after {
            Some(wanted) if wanted > LONGEST_WAIT => return Next::GiveUp,
            Some(wanted) => wanted,
            None => base * 2_u32.pow(self.retries),
        };
        self.retries += 1;
        Next::Again { retry: self.retries, after }
    }
}

/// Whether the same request may succeed a little later.
fn may_pass(failure: &Failure) -> bool {
    match failure.status {
        Some(200) | None => match failure.kind {
            FailureKind::Server | FailureKind::Overloaded | FailureKind::RateLimit => true,
            FailureKind::Authentication
            | FailureKind::Billing
            | FailureKind::InvalidRequest
            | FailureKind::ModelNotFound
            | FailureKind::TooLarge
            | FailureKind::MaxOutputTokens
            | FailureKind::Refusal => false,
        },
        Some(status) => matches!(status, 429 | 500 | 502 | 503 | 504 | 529),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(500);

    fn waits(failure: &Failure) -> Vec<u128> {
        let mut tries = Tries::default();
        let mut waits = Vec::new();
        while let Next::Again { after, retry } = tries.after(failure, BASE) {
            waits.push(after.as_millis());
            assert_eq!(retry as usize, waits.len());
        }
        waits
    }

    #[test]
    fn each_failure_is_tried_again_as_often_as_it_helps() {
        let status = |status| Failure::of_status(status, b"");
        let unreachable = Failure::new(FailureKind::Server, "refused");
        let wait =
            |seconds| Failure { retry_after: Some(Duration::from_secs(seconds)), ..status(429) };
        let full = vec![500, 1000, 2000, 4000];
        for code in [429, 500, 502, 503, 504, 529] {
            assert_eq!(waits(&status(code)), full, "{code}");
        }
        for code in [400, 401, 402, 403, 404, 405, 408, 413, 418, 501] {
            assert_eq!(waits(&status(code)), [] as [u128; 0], "{code}");
        }
        for (name, failure, expected) in [
            ("no connection", unreachable.clone(), full.clone()),
            ("broken late", Failure { reached: Reached::Block, ..unreachable.clone() }, vec![500]),
            ("told not to", Failure { for_good: true, ..status(529) }, vec![]),
            ("told when", wait(30), vec![30_000; 4]),
            ("told to wait long", wait(31), vec![]),
            ("too large", Failure::new(FailureKind::TooLarge, ""), vec![]),
            ("overloaded in the stream", Failure::new(FailureKind::Overloaded, ""), full),
            ("bad request in the stream", Failure::new(FailureKind::InvalidRequest, ""), vec![]),
        ] {
            assert_eq!(waits(&failure), expected, "{name}");
        }
    }

    #[test]
    fn late_breaks_between_other_failures_are_counted_on_their_own() {
        let early = Failure::new(FailureKind::Server, "");
        let late = Failure { reached: Reached::Block, ..early.clone() };
        let mut tries = Tries::default();
        assert!(matches!(tries.after(&late, BASE), Next::Again { retry: 1, .. }));
        assert!(matches!(tries.after(&early, BASE), Next::Again { retry: 2, .. }));
        assert_eq!(tries.after(&late, BASE), Next::GiveUp);
    }
}
