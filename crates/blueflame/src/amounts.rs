//! Time, tokens and money as people read them.

use std::time::Duration;

use blueflame_core::money::{Budget, Spend, Usd};
use blueflame_core::state::crew::Crew;
use jiff::Timestamp;

/// A length of time, in its two largest units.
pub fn time(length: Duration) -> String {
    let seconds = length.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if days > 0 {
        format!("{days}d {}h", hours % 24)
    } else if hours > 0 {
        format!("{hours}h {:02}m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

/// The time between two moments; none if they are the other way round.
pub fn between(start: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(start)).unwrap_or_default()
}

/// A count in at most five characters, for where it changes all the time.
pub fn short(count: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = count / (unit / 10);
        if tenths < 1_000 {
            format!("{}.{}", tenths / 10, tenths % 10)
        } else {
            format!("{}", tenths / 10)
        }
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{}M", tenths(1_000_000)),
        _ => format!("{}G", tenths(1_000_000_000)),
    }
}

/// Room on a disk.
pub fn size(bytes: u64) -> String {
    let tenths = |unit: u32| {
        let tenths = (bytes / 10_u64.pow(unit - 1)).max(1);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(3)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(6)),
        _ => format!("{} GB", tenths(9)),
    }
}

/// Dollars to the last millionth, so that columns of them add up.
pub fn exact(amount: Usd) -> String {
    format!("${}.{:06}", amount.micros() / 1_000_000, amount.micros() % 1_000_000)
}

/// What a session has spent, held against its budget.
pub fn spent(crew: &Crew) -> String {
    let Spend { cost, usage } = crew.spent();
    let tokens = usage.total();
    match crew.session_budget() {
        Budget::Unlimited => format!("{cost}, {tokens} tokens"),
        Budget::Usd(limit) => format!("{cost} of {limit}, {tokens} tokens"),
        Budget::Tokens(limit) => format!("{tokens} of {limit} tokens, {cost}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_right() {
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m 00s"),
            (3_599, "59m 59s"),
            (3_600, "1h 00m"),
            (90_061, "1d 1h"),
        ] {
            assert_eq!(time(Duration::from_secs(seconds)), shown);
        }
        for (count, shown) in [
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (99_999, "99.9k"),
            (100_000, "100k"),
            (999_999, "999k"),
            (1_250_000, "1.2M"),
            (3_000_000_000, "3.0G"),
        ] {
            assert_eq!(short(count), shown);
        }
        assert_eq!(exact(Usd::from_micros(12_000_034)), "$12.000034");
        let (one, other) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(5).unwrap());
        assert_eq!(between(one, other), Duration::from_secs(5));
        assert_eq!(between(other, one), Duration::ZERO);
    }
}
