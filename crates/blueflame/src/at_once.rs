//! The same work on many things, by as many threads as there are processors; and two
//! works that have nothing to do with each other.

use std::num::NonZero;
use std::panic;
use std::thread;

/// What came of each, in their order. So many things are worth a thread. Where no
/// more threads can be had, fewer do it all.
pub fn each<T: Sync, R: Send>(
    things: &[T],
    worth_a_thread: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = things.len().div_ceil(threads).max(worth_a_thread).max(1);
    let part = |things: &[T]| -> Vec<R> { things.iter().map(&work).collect() };
    thread::scope(|scope| {
        let (own, others) = things.split_at(share.min(things.len()));
        let others: Vec<_> = others
            .chunks(share)
            .map(|things| {
                let started = thread::Builder::new().spawn_scoped(scope, || part(things));
                (things, started)
            })
            .collect();
        let mut done = part(own);
        for (things, started) in others {
            done.extend(match started {
                Ok(started) => started.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
                Err(_) => part(things),
            });
        }
        done
    })
}

/// What came of both. Where no more threads can be had, it is one after the other.
pub fn both<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let started = thread::Builder::new().spawn_scoped(scope, &one);
        let other = other();
        let one = match started {
            Ok(started) => started.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
            Err(_) => one(),
        };
        (one, other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_told_in_order() {
        for (count, worth) in [(0, 1), (1, 0), (2, 1), (7, 1), (100, 16), (100, 1_000)] {
            let things: Vec<usize> = (0..count).collect();
            assert_eq!(each(&things, worth, |thing| *thing), things);
        }
        assert_eq!(both(|| 1, || 2), (1, 2));
    }
}
