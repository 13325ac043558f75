//! What deciding costs, and how it grows with the plan and the history.
//!
//! `cargo bench -p blueflame-core --bench deciding`. The history that is
//! replayed has 100,000 events, or as many as `BLUEFLAME_BENCH_EVENTS` says.

use std::hint::black_box;

use blueflame_core::decide::decide;
use blueflame_core::event::Event;
use blueflame_core::lock_path::LockPath;
use blueflame_core::state::State;
use blueflame_testkit::long_session::{LongSession, join, plan};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SIZES: [usize; 3] = [10, 1_000, 100_000];
/// A decision with work to give out, halfway through development.
fn decision(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide");
    for size in SIZES {
        let mut session = LongSession::half_done(plan(size));
        session.free_a_place();
        assert_eq!(decide(&session.state).len(), 1, "one place is free");
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| decide(black_box(&session.state)));
        });
    }
    group.finish();
}

/// Two events and the decision between them: one agent for another.
fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("exit, decide, claim");
    for size in SIZES {
        let mut session = LongSession::half_done(plan(size));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| session.turn_over());
        });
    }
    group.finish();
}

/// The same where one task needs all the others: what concerns any of them
/// concerns it.
fn step_with_a_join(c: &mut Criterion) {
    let mut group = c.benchmark_group("exit, decide, claim beside a join");
    for size in SIZES {
        let mut session = LongSession::half_done(join(size));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| session.turn_over());
        });
    }
    group.finish();
}

/// A decision that finds every file taken and looks in vain through all tasks.
fn crowded(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide with every file taken");
    for size in SIZES {
        let mut plan = plan(size);
        for task in &mut plan.tasks {
            task.dependencies.clear();
            task.file_locks = vec![LockPath::new("src/lib.rs").expect("a plain path")];
        }
        let session = LongSession::begin(plan);
        assert_eq!(session.state.crew.live().len(), 1);
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| decide(black_box(&session.state)));
        });
    }
    group.finish();
}

/// Putting a plan on the board.
fn planning(c: &mut Criterion) {
    let mut group = c.benchmark_group("approve a plan");
    group.sample_size(10);
    for size in SIZES {
        group.throughput(Throughput::Elements(size as u64));
        let session = LongSession::begin(plan(size));
        let until_approved = session.journal.iter().take(3).cloned().collect::<Vec<_>>();
        assert!(matches!(until_approved[2].1, Event::GateAnswered { .. }));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| {
                let history = until_approved.iter().map(|(at, event)| (*at, event));
                State::replay(history).expect("it was accepted before")
            });
        });
    }
    group.finish();
}

/// Folding a whole history, as a restarted orchestrator does.
fn replay(c: &mut Criterion) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark has no other input")]
    let wanted = std::env::var("BLUEFLAME_BENCH_EVENTS");
    let wanted: usize = wanted.ok().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let session = LongSession::of_events(wanted);
    let mut group = c.benchmark_group("replay");
    group.sample_size(10);
    group.throughput(Throughput::Elements(session.journal.len() as u64));
    group.bench_function(BenchmarkId::from_parameter(session.journal.len()), |b| {
        b.iter(|| {
            let history = session.journal.iter().map(|(at, event)| (*at, event));
            State::replay(history).expect("it was accepted before")
        });
    });
    group.finish();
}

criterion_group!(benches, decision, crowded, step, step_with_a_join, planning, replay);
criterion_main!(benches);
