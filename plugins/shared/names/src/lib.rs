//! What the naming policies that read names share: how a name falls into words, what the numbers in it mean, and which traces are
//! compared with each other. Plain functions over text, no bindings.

mod group;
mod token;
mod words;

pub use group::{Folder, group};
pub use token::{AXES, Meaning, Token, is_qualifier, tokens};
pub use words::{Word, words};
