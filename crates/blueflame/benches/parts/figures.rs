//! Figures of many measurements.

use std::fmt;
use std::time::Duration;

/// What was measured, shortest first, in milliseconds.
pub struct Figures(Vec<f64>);

impl Figures {
    pub fn of(times: &[Duration]) -> Figures {
        let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1_000.0).collect();
        times.sort_by(f64::total_cmp);
        Figures(times)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// What this share of them, of 100, does not pass.
    pub fn percent(&self, share: usize) -> f64 {
        self.0[(self.0.len() * share / 100).min(self.0.len() - 1)]
    }

    pub fn median(&self) -> f64 {
        self.percent(50)
    }

    pub fn most(&self) -> f64 {
        self.percent(100)
    }
}

/// The middle, the least and the most.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median() < 1.0 { 3 } else { 1 };
        let (middle, least, most) = (self.median(), self.percent(0), self.most());
        f.pad(&format!("{middle:.digits$} ms ({least:.digits$}, {most:.digits$})"))
    }
}

/// What else goes on here.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Whether a goal was reached, in words.
pub fn goal(what: &str, reached: bool) -> String {
    format!("goal: {what}: {}", if reached { "reached" } else { "NOT reached" })
}
