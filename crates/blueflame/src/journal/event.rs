//! From the payload of a record to an event of this program.
//!
//! The one place that knows older versions of the events: a payload is brought
//! up to the current version first, and becomes a type only then. It also tells
//! an event this program does not know from one it knows and cannot read.

use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned};

use super::record::Record;

/// A record that is intact, and still cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error("record {seq} is a `{kind}`, which this version of blueflame does not know")]
    Unknown { seq: u64, kind: String },
    #[error("record {seq}, a `{kind}`, cannot be read: {reason}")]
    Unreadable { seq: u64, kind: String, reason: String },
}

impl Record<'_> {
    /// The event, as the type `E`, which serializes as `{"t":…,"d":…}`.
    pub fn event<E: DeserializeOwned>(&self) -> Result<E, EventError> {
        let payload = upcast(self.schema, self.payload());
        serde_json::from_str(&payload).map_err(|error| {
            let (seq, kind) = (self.seq, self.kind.to_owned());
            if knows::<E>(self.kind) {
                EventError::Unreadable { seq, kind, reason: error.to_string() }
            } else {
                EventError::Unknown { seq, kind }
            }
        })
    }
}

/// Brings a payload from the version it was written in to the current one. Each
/// change of the events that is more than a new optional field gets a step here
/// and a sample in `tests/journals`. There is only one version so far.
fn upcast(_written: u32, payload: String) -> String {
    payload
}

/// Whether `E` has a variant of this name. It offers `E` the tag and no data,
/// and looks at what it complains about.
fn knows<E: DeserializeOwned>(kind: &str) -> bool {
    let tag_only = MapDeserializer::<_, Complaint>::new(std::iter::once(("t", kind)));
    !matches!(E::deserialize(tag_only), Err(Complaint::UnknownVariant))
}

#[derive(Debug)]
enum Complaint {
    UnknownVariant,
    Other,
}

impl de::Error for Complaint {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Complaint::Other
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Complaint::UnknownVariant
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the probe for a known event type")
    }
}

impl std::error::Error for Complaint {}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    use super::super::chain::Head;
    use super::super::record::{SCHEMA, encode};
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "t", content = "d")]
    enum Sample {
        #[serde(rename = "task.moved")]
        Moved { to: Place },
        #[serde(rename = "session.stopped")]
        Stopped,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Place {
        Queue,
    }

    fn read(event: &Value) -> Result<Sample, EventError> {
        let (mut out, mut head) = (Vec::new(), Head::START);
        encode(&mut out, &mut head, (Timestamp::UNIX_EPOCH, 1), event).unwrap();
        Record::parse(out.trim_ascii_end(), SCHEMA).unwrap().event()
    }

    #[test]
    fn known_events_are_read() {
        assert_eq!(read(&json!({"t": "session.stopped"})), Ok(Sample::Stopped));
        let moved = json!({"t": "task.moved", "d": {"to": "queue", "added_later": 1}});
        assert_eq!(read(&moved), Ok(Sample::Moved { to: Place::Queue }));
    }

    #[test]
    fn an_unknown_type_is_named_with_its_place() {
        let unknown = read(&json!({"t": "task.teleported", "d": {}})).unwrap_err();
        assert_eq!(unknown, EventError::Unknown { seq: 1, kind: "task.teleported".to_owned() });
    }

    #[test]
    fn a_known_type_with_bad_data_is_not_called_unknown() {
        // The inner name is unknown too, but it is not the type of the event.
        for data in [json!({"to": "mars"}), json!({}), json!(null)] {
            let bad = read(&json!({"t": "task.moved", "d": data})).unwrap_err();
            assert!(matches!(bad, EventError::Unreadable { .. }), "{bad}");
        }
        assert!(matches!(read(&json!({"t": "task.moved"})), Err(EventError::Unreadable { .. })));
    }
}
