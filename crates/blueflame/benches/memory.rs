//! How long it takes to look up what a thousand sessions left, and to choose what
//! a planner is told.
//!
//! ```text
//! cargo bench -p blueflame --bench memory
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]

use std::hint::black_box;

use blueflame::memory::{Keeper, Recall, Terms};
use blueflame::store::Store;
use blueflame_core::config;
use blueflame_testkit::TestEnv;
use blueflame_testkit::notes::left_by;
use criterion::{Criterion, criterion_group, criterion_main};

fn looking_up(criterion: &mut Criterion) {
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let memory = config.memory.as_ref().unwrap();
    let mut group = criterion.benchmark_group("memory");
    group.sample_size(20);
    for sessions in [10, 100, 1_000] {
        let env = TestEnv::new();
        let store = Store::find(env.repository("project").path()).unwrap();
        let notes = (0..sessions).flat_map(left_by).collect();
        Keeper::of(&store).import(&Terms::of(memory), notes).unwrap();
        group.bench_function(format!("planner, {sessions} sessions"), |bench| {
            bench.iter(|| {
                let recall = Recall::of(&store, Some(memory), None);
                black_box(recall.for_planner("Do it.").unwrap())
            });
        });
        let recall = Recall::of(&store, Some(memory), None);
        group.bench_function(format!("choosing alone, {sessions} sessions"), |bench| {
            bench.iter(|| black_box(recall.for_planner("Do it.").unwrap()));
        });
    }
    group.finish();
}

criterion_group!(benches, looking_up);
criterion_main!(benches);
