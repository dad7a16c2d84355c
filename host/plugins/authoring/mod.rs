//! What the author of a plugin needs besides a compiler: a folder to start from ([`scaffold`]), a build that calls the language's own
//! tool ([`build`]), cases that say what the plugin should answer ([`cases`]), and what every plugin owes its host ([`conformance`]).

pub mod build;
pub mod cases;
pub mod conformance;
mod contents;
mod lang;
mod samples;
pub mod scaffold;

pub use lang::Lang;
