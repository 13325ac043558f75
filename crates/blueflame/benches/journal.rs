//! What durability costs, and how fast a journal is checked and read.
//!
//! Appends are measured beside a plain write and flush of the same bytes to the
//! same disk, turn by turn, because the disk decides most of the time and changes
//! its mind. So are eight producers that wait for the disk after each event: all
//! through one writer, which takes what has arrived at once as a session does, and each
//! with a write and flush of its own. Reading takes 100,000 events, or as many as asked for:
//!
//! ```text
//! BLUEFLAME_BENCH_EVENTS=1000000 cargo bench -p blueflame --bench journal
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use blueflame::journal::{Header, Reader, Step, Writer, scan};
use blueflame_core::ids::SessionId;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

const AT: Timestamp = Timestamp::UNIX_EPOCH;

/// About as large as events are: 300 bytes a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "t", content = "d")]
enum Event {
    #[serde(rename = "agent.claimed")]
    Claimed { task: String, agent: String, attempt: u32, locks: Vec<String>, note: String },
    #[serde(rename = "agent.spent")]
    Spent { agent: String, input: u64, output: u64, micros: u64 },
}

fn event(number: u64) -> Event {
    let agent = format!("worker-{number:08x}");
    if number.is_multiple_of(4) {
        Event::Spent { agent, input: number * 31, output: number, micros: number * 7 }
    } else {
        Event::Claimed {
            task: format!("task-{number}"),
            agent,
            attempt: 2,
            locks: vec!["src/journal".to_owned(), "tests/durability".to_owned()],
            note: "the second attempt, after the validator asked for a \"smaller\" change"
                .to_owned(),
        }
    }
}

fn create(directory: &Path) -> (PathBuf, Writer) {
    let path = directory.join("journal.jsonl");
    let session = SessionId::new("ses-20261115-090000").unwrap();
    let writer = Writer::create(&path, &Header::new(session), AT, &[] as &[&Event]).unwrap();
    (path, writer)
}

fn append(writer: &mut Writer, events: &[Event]) {
    let batch: Vec<_> = events.iter().map(|event| (AT, event)).collect();
    writer.append(&batch).unwrap();
}

fn plain(file: &mut File, bytes: &[u8]) {
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
}

/// A journal, and a file that gets the same bytes without any of our care.
struct Pair {
    _directory: tempfile::TempDir,
    writer: Writer,
    file: File,
    events: Vec<Event>,
    bytes: Vec<u8>,
}

impl Pair {
    fn new(batch: u64) -> Pair {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut writer) = create(directory.path());
        let events: Vec<Event> = (1..=batch).map(event).collect();
        let start = usize::try_from(writer.head().end).unwrap();
        append(&mut writer, &events);
        let bytes = std::fs::read(path).unwrap().split_off(start);
        let plain = directory.path().join("plain");
        let file = OpenOptions::new().create(true).append(true).open(plain).unwrap();
        Pair { _directory: directory, writer, file, events, bytes }
    }
}

fn appends(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    group.measurement_time(Duration::from_secs(8)).sample_size(50);
    for batch in [1, 32] {
        group.throughput(Throughput::Elements(batch));
        let mut pair = Pair::new(batch);
        group.bench_function(format!("journal, {batch} at a time"), |bencher| {
            bencher.iter(|| append(&mut pair.writer, &pair.events));
        });
        group.bench_function(format!("plain write, {batch} at a time"), |bencher| {
            bencher.iter(|| plain(&mut pair.file, &pair.bytes));
        });
    }
    group.finish();
    for batch in [1, 32] {
        report_ratio(batch);
    }
}

/// The two in turn, so that both meet the same moods of the disk.
#[expect(clippy::print_stderr, reason = "this is the report of a benchmark")]
fn report_ratio(batch: u64) {
    const ROUNDS: usize = 500;
    let mut pair = Pair::new(batch);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        append(&mut pair.writer, &pair.events);
        ours.push(start.elapsed());
        let start = Instant::now();
        plain(&mut pair.file, &pair.bytes);
        theirs.push(start.elapsed());
    }
    for times in [&mut ours, &mut theirs] {
        times.sort_unstable();
    }
    let (middle, late) = (ROUNDS / 2, ROUNDS * 99 / 100);
    eprintln!(
        "{batch} at a time, in turn: journal p50 {:?} p99 {:?}, plain p50 {:?} p99 {:?}, p50 ratio {:.2}",
        ours[middle],
        ours[late],
        theirs[middle],
        theirs[late],
        ours[middle].as_secs_f64() / theirs[middle].as_secs_f64(),
    );
}

/// How many make events, each of which waits until its event is on the disk.
const PRODUCERS: usize = 8;
const ROUND: Duration = Duration::from_secs(1);
const ROUNDS: usize = 7;

/// All that gets an event onto the disk, and comes back when it is there.
type Recorder = Box<dyn FnMut(&Event) + Send>;

/// Both ways in turn, a second each.
#[expect(clippy::print_stderr, reason = "this is the report of a benchmark")]
fn producers(_: &mut Criterion) {
    let (mut together, mut apart) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        together.push(round(through_one_writer));
        apart.push(round(each_for_itself));
    }
    let ratios =
        together.iter().zip(&apart).map(|(ours, theirs)| per_second(ours) / per_second(theirs));
    let (low, middle, high) = spread(ratios.collect());
    for (name, rounds) in [("through one writer", &together), ("write and flush each", &apart)] {
        let (low, middle, high) = spread(rounds.iter().map(|it| per_second(it)).collect());
        let mut waits = rounds.concat();
        waits.sort_unstable();
        let at = |percent: usize| waits[waits.len() * percent / 100];
        eprintln!(
            "{PRODUCERS} producers, {name}: {middle:.0} events a second ({low:.0} to {high:.0}), \
             p50 {:?} p99 {:?}",
            at(50),
            at(99)
        );
    }
    eprintln!("{PRODUCERS} producers, ratio: {middle:.2} ({low:.2} to {high:.2})");
}

/// How long each event took that the producers made in one round.
fn round(recorders: fn(&Path) -> Vec<Recorder>) -> Vec<Duration> {
    let directory = tempfile::tempdir().unwrap();
    let recorders = recorders(directory.path());
    let end = Instant::now() + ROUND;
    let produce = |mut record: Recorder| {
        let mut waits = Vec::new();
        while Instant::now() < end {
            let event = event(waits.len() as u64);
            let begun = Instant::now();
            record(&event);
            waits.push(begun.elapsed());
        }
        waits
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            recorders.into_iter().map(|it| scope.spawn(move || produce(it))).collect();
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect()
    })
}

/// As facts reach a session: whatever has arrived is written at once.
fn through_one_writer(directory: &Path) -> Vec<Recorder> {
    let (_, mut writer) = create(directory);
    let (post, mut inbox) = tokio::sync::mpsc::unbounded_channel::<(Event, mpsc::Sender<()>)>();
    std::thread::spawn(move || {
        let mut arrived = Vec::new();
        while inbox.blocking_recv_many(&mut arrived, PRODUCERS) > 0 {
            let batch: Vec<_> = arrived.iter().map(|(event, _)| (AT, event)).collect();
            writer.append(&batch).unwrap();
            for (_, done) in arrived.drain(..) {
                done.send(()).unwrap();
            }
        }
    });
    let recorder = || -> Recorder {
        let (post, (done, is_done)) = (post.clone(), mpsc::channel());
        Box::new(move |event| {
            post.send((event.clone(), done.clone())).unwrap();
            is_done.recv().unwrap();
        })
    };
    (0..PRODUCERS).map(|_| recorder()).collect()
}

fn each_for_itself(directory: &Path) -> Vec<Recorder> {
    let path = directory.join("plain");
    let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let file = Arc::new(Mutex::new(file));
    let recorder = || -> Recorder {
        let file = Arc::clone(&file);
        Box::new(move |event| {
            let mut line = serde_json::to_vec(event).unwrap();
            line.push(b'\n');
            plain(&mut file.lock().unwrap(), &line);
        })
    };
    (0..PRODUCERS).map(|_| recorder()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "so many events a benchmark does not make")]
fn per_second(waits: &[Duration]) -> f64 {
    waits.len() as f64 / ROUND.as_secs_f64()
}

/// The least, the middle and the most.
fn spread(mut figures: Vec<f64>) -> (f64, f64, f64) {
    figures.sort_unstable_by(f64::total_cmp);
    (figures[0], figures[figures.len() / 2], figures[figures.len() - 1])
}

fn reads(criterion: &mut Criterion) {
    let count = std::env::var("BLUEFLAME_BENCH_EVENTS")
        .map_or(100_000, |count| count.parse().expect("BLUEFLAME_BENCH_EVENTS is a number"));
    let directory = tempfile::tempdir().unwrap();
    let (path, mut writer) = create(directory.path());
    for start in (0..count).step_by(10_000) {
        let events: Vec<Event> = (start..count.min(start + 10_000)).map(event).collect();
        append(&mut writer, &events);
    }
    let mut group = criterion.benchmark_group(format!("read {count} events"));
    group.throughput(Throughput::Bytes(writer.head().end)).sample_size(10);
    group.bench_function("verify", |bencher| {
        bencher.iter(|| scan(&path, File::open(&path).unwrap(), |_, _| Ok(())).unwrap());
    });
    group.bench_function("verify and parse", |bencher| {
        bencher.iter(|| {
            let mut reader = Reader::open(&path).unwrap();
            let mut read = 0;
            while let Step::Record(record) = reader.step().unwrap() {
                std::hint::black_box(record.event::<Event>().unwrap());
                read += 1;
            }
            assert_eq!(read, count);
        });
    });
    group.finish();
}

criterion_group!(benches, appends, producers, reads);
criterion_main!(benches);
