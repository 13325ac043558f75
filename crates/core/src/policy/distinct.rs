//! JSON in which no key is said twice. Of two that have the same name some readers
//! take the first and some the last, so what was judged need not be what is done.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value whose objects, however deep, have distinct keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Distinct(pub Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Distinct)
    }
}

/// For a field that is such a value.
pub(super) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Distinct::deserialize(deserializer).map(|distinct| distinct.0)
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Distinct(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Distinct(value))) = pairs.next_entry::<String, Distinct>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` is said twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_once_is_kept_and_what_is_said_twice_is_refused() {
        let good = r#"{"a": [1, -2, 2.5, null, true, "x", {"a": {}}], "b": {"a": 1}}"#;
        let read: Distinct = serde_json::from_str(good).unwrap();
        assert_eq!(read.0, serde_json::from_str::<Value>(good).unwrap());
        for bad in [r#"{"a": 1, "a": 1}"#, r#"{"x": [{"a": 1, "b": 2, "a": 3}]}"#, "{", "[1] x"] {
            assert!(serde_json::from_str::<Distinct>(bad).is_err(), "{bad}");
        }
    }
}
