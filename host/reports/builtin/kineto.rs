//! Kernels of a Kineto trace: complete events (`"ph": "X"`) of category `kernel`, durations in microseconds
//! (facts/tracelens.md section 5). Older traces write the category as `Kernel`.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Sums, Tally};

/// The whole trace, adding its kernels to the tally.
pub(super) struct Document<'a>(pub(super) &'a mut Tally);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON object with traceEvents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Events(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Events<'a>(&'a mut Tally);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Event>()? {
            let is_kernel = event
                .cat
                .0
                .as_deref()
                .is_some_and(|cat| cat.eq_ignore_ascii_case("kernel"));
            if is_kernel && event.ph.0.as_deref() == Some("X") {
                self.0.add(
                    event.name.0.as_deref().unwrap_or(""),
                    &Sums::of_one(event.dur.0.unwrap_or(0.0)),
                );
            }
        }
        Ok(())
    }
}

/// Only what is counted; other members are passed over. A member of an unexpected type counts as absent.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    ph: Text,
    #[serde(default)]
    cat: Text,
    #[serde(default)]
    name: Text,
    #[serde(default)]
    dur: Microseconds,
}

#[derive(Default)]
struct Text(Option<String>);

#[derive(Default)]
struct Microseconds(Option<f64>);

/// A value taken in the types that writers use for it; containers and the rest are read and dropped.
macro_rules! lenient {
    ($type:ident, { $($visit:item)* }) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                struct Lenient;
                impl<'de> Visitor<'de> for Lenient {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        f.write_str("any value")
                    }
                    fn visit_unit<E>(self) -> Result<$type, E> {
                        Ok($type(None))
                    }
                    fn visit_bool<E>(self, _: bool) -> Result<$type, E> {
                        Ok($type(None))
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        Ok($type(None))
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<$type, A::Error> {
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        Ok($type(None))
                    }
                    $($visit)*
                }
                json.deserialize_any(Lenient)
            }
        }
    };
}

lenient!(Text, {
    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(Some(text.to_owned())))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Text, E> {
        Ok(Text(None))
    }
    fn visit_u64<E>(self, _: u64) -> Result<Text, E> {
        Ok(Text(None))
    }
    fn visit_i64<E>(self, _: i64) -> Result<Text, E> {
        Ok(Text(None))
    }
});

lenient!(Microseconds, {
    // Some converters write numbers as strings (facts/traces.md A63).
    fn visit_str<E>(self, text: &str) -> Result<Microseconds, E> {
        Ok(Microseconds(text.parse().ok()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Microseconds, E> {
        Ok(Microseconds(Some(value)))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Microseconds, E> {
        Ok(Microseconds(Some(value as f64)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Microseconds, E> {
        Ok(Microseconds(Some(value as f64)))
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_members_do_not_cost_the_trace() {
        let json = r#"{"schemaVersion": 1, "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "dur": 2.5, "args": {"name": "not this"}},
            {"ph": "X", "cat": "Kernel", "name": "gemm", "dur": "1.5"},
            {"ph": "X", "cat": ["kernel"], "name": {"a": 1}, "dur": null},
            {"ph": "i", "cat": "kernel", "name": "gemm", "dur": 100},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "dur": 100},
            {}
        ], "traceName": "x"}"#;
        let mut tally = Tally::default();
        Document(&mut tally)
            .deserialize(&mut serde_json::Deserializer::from_str(json))
            .unwrap();
        let kernels = tally.kernels();
        assert_eq!(kernels.len(), 1);
        assert_eq!(
            (kernels[0].count, kernels[0].total_us, kernels[0].max_us),
            (2, 4.0, 2.5)
        );
    }
}
