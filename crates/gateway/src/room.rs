//! Room for the bodies of requests, over all connections of one gateway.
//!
//! Each body has a bound of its own, but an agent can open many connections. A
//! body takes up its room before it is read, and gives it back when nobody holds
//! it any more. Room is taken in one go: two bodies never wait for each other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::Refusal;

/// The bytes of all bodies together: two of the largest, or hundreds of those
/// that agents send.
const ALL: usize = 2 * crate::request::LARGEST;

#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Room(Arc::new(Semaphore::new(ALL)))
    }
}

/// Room that is taken.
#[derive(Debug)]
pub(crate) struct Taken(OwnedSemaphorePermit);

impl Room {
    /// Waits for room for so many bytes, or says that there is none.
    pub(crate) async fn take(&self, bytes: usize, within: Duration) -> Result<Taken, Refusal> {
        let full = || Refusal::Full { waited: within };
        let bytes = u32::try_from(bytes).map_err(|_| full())?;
        let taken = Arc::clone(&self.0).acquire_many_owned(bytes);
        let taken = tokio::time::timeout(within, taken).await.map_err(|_| full())?;
        taken.map(Taken).map_err(|_| full())
    }
}

impl Taken {
    /// The same body, which keeps as much room as it needs for as long as it
    /// is there.
    pub(crate) fn hold(mut self, body: Bytes) -> Bytes {
        struct Held(Bytes, #[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        if let Some(unused) = self.0.num_permits().checked_sub(body.len()) {
            drop(self.0.split(unused));
        }
        Bytes::from_owner(Held(body, self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_taken_while_the_body_is_there_and_given_back_after() {
        let room = Room::default();
        let left = || room.0.available_permits();
        let body = room.take(ALL, Duration::ZERO).await.unwrap().hold(Bytes::from_static(b"hi"));
        assert_eq!((left(), &body[..]), (ALL - 2, &b"hi"[..]), "what is not needed is free");
        let again = body.clone();
        drop(body);
        let all = room.take(ALL, Duration::from_millis(1)).await;
        assert!(matches!(all, Err(Refusal::Full { .. })), "{all:?}");
        drop(again);
        assert_eq!(left(), ALL);
    }
}
