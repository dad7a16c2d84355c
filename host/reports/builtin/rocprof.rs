//! Kernels of a rocprofv3 trace: `buffer_records.kernel_dispatch`, whose `kernel_id` names an entry of `kernel_symbols`;
//! timestamps in nanoseconds. All processes of the file are counted.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Sums, Tally};

/// The whole trace, adding its kernels to the tally.
pub(super) struct Document<'a>(pub(super) &'a mut Tally);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let part = Part {
            at: At::Root,
            process: &mut Process::default(),
            tally: self.0,
        };
        part.deserialize(json)
    }
}

/// One process: symbols may stand before or behind the dispatches, so both are kept until its end, the dispatches added up.
#[derive(Default)]
struct Process {
    symbols: HashMap<u64, String>,
    dispatches: HashMap<u64, Sums>,
}

/// Where in the document a value stands.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Root,
    Tools,
    Tool,
    Symbols,
    Buffers,
    Dispatches,
}

struct Part<'a> {
    at: At,
    process: &'a mut Process,
    tally: &'a mut Tally,
}

impl Part<'_> {
    fn inside(&mut self, at: At) -> Part<'_> {
        Part {
            at,
            process: self.process,
            tally: self.tally,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.at {
            At::Root | At::Tool | At::Buffers => json.deserialize_map(self),
            At::Tools | At::Symbols | At::Dispatches => json.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("rocprofv3 JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let inside = match (self.at, key.as_str()) {
                (At::Root, "rocprofiler-sdk-tool") => At::Tools,
                (At::Tool, "kernel_symbols") => At::Symbols,
                (At::Tool, "buffer_records") => At::Buffers,
                (At::Buffers, "kernel_dispatch") => At::Dispatches,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            map.next_value_seed(self.inside(inside))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        match self.at {
            At::Symbols => {
                while let Some(symbol) = seq.next_element::<Symbol>()? {
                    self.process.symbols.insert(symbol.kernel_id, symbol.name());
                }
            }
            At::Dispatches => {
                while let Some(dispatch) = seq.next_element::<Dispatch>()? {
                    let nanoseconds = dispatch.end_timestamp.saturating_sub(dispatch.start_timestamp);
                    let sums = self
                        .process
                        .dispatches
                        .entry(dispatch.dispatch_info.kernel_id)
                        .or_default();
                    sums.merge(&Sums::of_one(nanoseconds as f64 / 1000.0));
                }
            }
            _ => {
                while seq.next_element_seed(self.inside(At::Tool))?.is_some() {
                    let process = std::mem::take(self.process);
                    for (kernel, sums) in process.dispatches {
                        let name = process
                            .symbols
                            .get(&kernel)
                            .cloned()
                            .unwrap_or_else(|| format!("kernel {kernel}"));
                        self.tally.add(&name, &sums);
                    }
                }
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Symbol {
    #[serde(default)]
    kernel_id: u64,
    formatted_kernel_name: Option<String>,
    kernel_name: Option<String>,
}

impl Symbol {
    fn name(self) -> String {
        let given = |name: Option<String>| name.filter(|name| !name.is_empty());
        given(self.formatted_kernel_name)
            .or(given(self.kernel_name))
            .unwrap_or_else(|| format!("kernel {}", self.kernel_id))
    }
}

#[derive(Deserialize)]
struct Dispatch {
    start_timestamp: u64,
    end_timestamp: u64,
    dispatch_info: DispatchInfo,
}

#[derive(Deserialize)]
struct DispatchInfo {
    kernel_id: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_may_stand_behind_the_dispatches() {
        let json = r#"{"rocprofiler-sdk-tool": [{
            "buffer_records": {"hip_api": [{"x": 1}], "kernel_dispatch": [
                {"start_timestamp": 1000, "end_timestamp": 3000, "dispatch_info": {"kernel_id": 7, "grid_size": {"x": 1}}},
                {"start_timestamp": 5000, "end_timestamp": 9000, "dispatch_info": {"kernel_id": 7}},
                {"start_timestamp": 0, "end_timestamp": 1000, "dispatch_info": {"kernel_id": 8}}]},
            "kernel_symbols": [{"kernel_id": 7, "kernel_name": "raw", "formatted_kernel_name": "gemm"}]}]}"#;
        let mut tally = Tally::default();
        Document(&mut tally)
            .deserialize(&mut serde_json::Deserializer::from_str(json))
            .unwrap();
        let kernels = tally.kernels();
        assert_eq!(
            (kernels[0].name.as_str(), kernels[0].count, kernels[0].total_us),
            ("gemm", 2, 6.0)
        );
        assert_eq!(kernels[1].name, "kernel 8");
    }
}
