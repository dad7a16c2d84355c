//! What the author of a plugin needs besides a compiler: [cases] that say what the plugin should answer, and the [conformance] that
//! every plugin owes its host.

pub mod cases;
pub mod conformance;
mod contents;
