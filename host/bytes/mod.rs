//! Damage in bytes: what is wrong with an input, and the same input without it.
//!
//! This room knows no traces and no meaning of files; it knows encodings, containers and RFC 8259. [`scan`] reads an input once and
//! says what is wrong with it; [`mend`] reads it again and writes a copy in which the flaws alone are replaced.

mod blocks;
mod container;
mod flaw;
mod grammar;
mod machine;
mod members;
mod mend;
mod number;
mod observer;
mod place;
mod scan;
mod utf8;
mod window;

pub use container::{Container, Opened, open};
pub use flaw::{Flaw, FlawKind, Flaws, LONGEST_SHOWN};
pub use mend::{Edit, Mended, MendingReader, mend};
pub use observer::{LONGEST_REPORTED, Observer, Scalar, Structure};
pub use scan::{
    ALL_MEMBERS, Check, Findings, LONGEST_END, LONGEST_MEMBER, MOST_KEYS, Member, Options, Root, Verdict, scan,
};
pub use utf8::{ill_formed, repair};

#[cfg(test)]
mod tests;
