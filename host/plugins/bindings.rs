//! Rust types and traits made from `wit/0.1.0`. The second world shares the first one's interfaces, so that each import is
//! implemented once.

// The macro writes no docs for the glue around the interfaces.
#![allow(missing_docs)]

pub mod trace_naming {
    wasmtime::component::bindgen!({
        path: "wit/0.1.0",
        world: "trace-naming",
        imports: { default: trappable },
        additional_derives: [PartialEq],
    });
}

pub mod dyno_interpreter {
    wasmtime::component::bindgen!({
        path: "wit/0.1.0",
        world: "dyno-interpreter",
        imports: { default: trappable },
        additional_derives: [PartialEq],
        with: {
            "tracemend:plugin/types": crate::plugins::bindings::trace_naming::tracemend::plugin::types,
            "tracemend:plugin/bytes": crate::plugins::bindings::trace_naming::tracemend::plugin::bytes,
            "tracemend:plugin/log": crate::plugins::bindings::trace_naming::tracemend::plugin::log,
        },
    });
}

pub use trace_naming::tracemend::plugin::{bytes, contents, log, types};
