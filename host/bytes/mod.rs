//! Damage in bytes: what is wrong with an input, and the same input without it.
//!
//! This room knows no traces and no meaning of files; it knows encodings, containers, RFC 8259, and of the writers the order in
//! which they put their keys. [`scan`] reads an input once and says what is wrong with it; [`mend`] reads it again and writes a
//! copy in which the flaws alone are replaced; [`mend_logged`] also writes a log from which [`restore`] makes the original again.
//! All of them stream: what they keep in memory does not grow with the input, nor with its damage.
//!
//! How a pass goes: `text` takes off gzip (`gzip`, `ahead` on a thread of its own) and UTF-16 (`utf16`); `window` holds the part of
//! the text that is looked at; `blocks` finds the structure in it with SIMD, `grammar` walks from one place to the next with
//! `nesting` in mind, and `machine` keeps the check of the `encoding` in step. Where the grammar stops, `recover`, `quotes` and `zeros`
//! mend or `refuse` refuses; at the end of the text `ending` closes what is open. `found` gathers all that for the findings.
//! Edits are told in the order of their offsets, so the copy can be written at once (`copying`) or by a second pass (`mend`).
//! `verify` proves a copy clean from what stands around its edits, which `standing` makes comparable with the original.

mod ahead;
mod blocks;
mod container;
mod copying;
mod cut;
mod edit;
mod encoding;
mod ending;
mod escapes;
mod findings;
mod flaw;
mod found;
mod grammar;
mod gzip;
mod log;
mod machine;
mod members;
mod mend;
mod nesting;
mod number;
mod observer;
mod options;
mod place;
mod places;
mod quotes;
mod recover;
mod refuse;
mod scan;
mod standing;
mod survey;
mod text;
mod utf16;
mod utf8;
mod utf8_pass;
mod verify;
mod view;
mod window;
mod words;
mod zeros;

pub use container::{Container, Opened, USUAL_EXPANSION, open};
pub use copying::scan_and_mend;
pub use edit::Edit;
pub use findings::{ALL_MEMBERS, Findings, LONGEST_END, LONGEST_MEMBER, MOST_KEYS, Member, Root, Verdict};
pub use flaw::{Flaw, FlawKind, Flaws, LONGEST_SHOWN};
pub use log::{RestoreError, mend_logged, restore};
pub use mend::{Mended, MendingReader, mend};
pub use observer::{LONGEST_REPORTED, Observer, Scalar, Structure};
pub use options::{Check, Options, Readers};
pub use scan::scan;
pub use utf8::{ill_formed, repair};
pub use verify::{verify, verify_whole};

#[cfg(test)]
mod tests;
