//! What a trace is, by its content (facts/traces.md sections B32, D and rule A26).

use std::fmt;

use crate::bytes::{Findings, Observer, Scalar, Structure, Verdict};

/// What kind of file a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// PyTorch's Kineto: a JSON object with `traceEvents`.
    Kineto,
    /// rocprofv3 JSON: a JSON object with `rocprofiler-sdk-tool`.
    Rocprof,
    /// A Perfetto protobuf.
    Pftrace,
    /// A JAX profile: an XSpace protobuf.
    XPlane,
    /// A PyTorch execution trace: a JSON object with `schema` and `nodes`.
    ExecutionTrace,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind's name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Kineto => "kineto",
            Kind::Rocprof => "rocprof",
            Kind::Pftrace => "pftrace",
            Kind::XPlane => "xplane",
            Kind::ExecutionTrace => "execution-trace",
            Kind::Other => "other",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The member that makes a JSON object a Kineto trace.
const KINETO: &[u8] = b"traceEvents";
/// The member that makes it rocprofv3's.
const ROCPROF: &[u8] = b"rocprofiler-sdk-tool";
/// Event categories of work on a GPU; the capital ones are older (facts/tracelens.md section 5).
const GPU_CATEGORIES: [&[u8]; 6] = [b"kernel", b"gpu_memcpy", b"gpu_memset", b"Kernel", b"Memcpy", b"Memset"];

/// Learns a document's kind, and whether it holds GPU events, while the one pass over its bytes runs.
#[derive(Debug, Default)]
pub struct KindObserver {
    kineto: bool,
    rocprof: bool,
    schema: bool,
    nodes: bool,
    root_is_array: bool,
    array_of_events: bool,
    manifest: bool,
    gpu_events: bool,
}

impl KindObserver {
    /// The kind of the document heard.
    pub fn kind(&self) -> Kind {
        if self.rocprof {
            Kind::Rocprof
        } else if self.kineto {
            Kind::Kineto
        } else if self.schema && self.nodes {
            Kind::ExecutionTrace
        } else {
            Kind::Other
        }
    }

    /// Whether the document is a bare array of trace events, as PyTorch builds without Kineto write it.
    pub fn is_array_of_events(&self) -> bool {
        self.array_of_events
    }

    /// Whether the document is a capture manifest, which says whose traces lie beside it.
    pub fn is_manifest(&self) -> bool {
        self.manifest
    }

    /// Whether it holds GPU events; none where that cannot be told: another kind, or a document that was not heard to its end.
    pub fn gpu_events(&self, findings: &Findings) -> Option<bool> {
        let heard_all = findings.verdict != Verdict::Refused;
        match self.kind() {
            Kind::Kineto | Kind::Rocprof if self.gpu_events => Some(true),
            Kind::Kineto | Kind::Rocprof if heard_all => Some(false),
            _ => None,
        }
    }

    fn top_level(&mut self, key: Option<&[u8]>) {
        match key {
            Some(KINETO) => self.kineto = true,
            Some(ROCPROF) => self.rocprof = true,
            Some(b"schema") => self.schema = true,
            Some(b"nodes") => self.nodes = true,
            Some(b"tracemend_manifest") => self.manifest = true,
            _ => {}
        }
    }
}

impl Observer for KindObserver {
    // rocprofiler-sdk-tool (2) > process (3) > buffer_records (4) > kernel_dispatch (5) > dispatch (6)
    const MAX_DEPTH: usize = 6;

    fn begin(&mut self, structure: Structure, depth: usize, key: Option<&[u8]>) -> bool {
        match depth {
            1 => {
                self.root_is_array = structure == Structure::Array;
                true
            }
            2 if self.root_is_array => !self.array_of_events,
            2 => {
                self.top_level(key);
                structure == Structure::Array && matches!(key, Some(KINETO | ROCPROF))
            }
            _ if self.root_is_array || self.gpu_events => false,
            3 => true,
            4 => self.rocprof && key == Some(b"buffer_records"),
            5 => self.rocprof && matches!(key, Some(b"kernel_dispatch" | b"memory_copy")),
            _ => {
                self.gpu_events |= self.rocprof;
                false
            }
        }
    }

    fn scalar(&mut self, value: Scalar<'_>, depth: usize, key: Option<&[u8]>) {
        match (depth, key) {
            (1, _) if !self.root_is_array => self.top_level(key),
            (2, Some(b"ph")) => self.array_of_events |= self.root_is_array,
            (3, Some(b"cat")) if !self.gpu_events && self.kineto => {
                self.gpu_events = matches!(value, Scalar::String(cat) if GPU_CATEGORIES.contains(&cat));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{Options, scan};

    fn told(json: &str) -> (Kind, Option<bool>) {
        let mut observer = KindObserver::default();
        let findings = scan(json.as_bytes(), &Options::default(), &mut observer).unwrap();
        (observer.kind(), observer.gpu_events(&findings))
    }

    #[test]
    fn kinds_are_told_by_content() {
        assert_eq!(
            told(r#"{"traceEvents":[{"ph":"X","cat":"kernel"}]}"#),
            (Kind::Kineto, Some(true))
        );
        assert_eq!(
            told(r#"{"a":{"cat":"kernel"},"traceEvents":[{"args":{"cat":"kernel"}}]}"#),
            (Kind::Kineto, Some(false))
        );
        assert_eq!(told(r#"{"traceEvents":null}"#), (Kind::Kineto, Some(false)));
        let rocprof = |dispatches| {
            format!(r#"{{"rocprofiler-sdk-tool":[{{"buffer_records":{{"kernel_dispatch":[{dispatches}]}}}}]}}"#)
        };
        assert_eq!(told(&rocprof("{}")), (Kind::Rocprof, Some(true)));
        assert_eq!(told(&rocprof("")), (Kind::Rocprof, Some(false)));
        assert_eq!(
            told(r#"{"schema":"1.0.1","pid":1,"nodes":[{}]}"#),
            (Kind::ExecutionTrace, None)
        );
        assert_eq!(told(r#"{"args":{"traceEvents":[]}}"#), (Kind::Other, None));
    }

    #[test]
    fn bare_arrays_of_events_are_known() {
        let mut observer = KindObserver::default();
        scan(&br#"[{"name":"a","ph":"X"}]"#[..], &Options::default(), &mut observer).unwrap();
        assert_eq!((observer.kind(), observer.is_array_of_events()), (Kind::Other, true));
        let mut observer = KindObserver::default();
        scan(
            &br#"[{"name":"a"},{"b":{"ph":"X"}}]"#[..],
            &Options::default(),
            &mut observer,
        )
        .unwrap();
        assert!(!observer.is_array_of_events());
    }
}
