//! The members of the root object, gathered as the walk passes them.

use super::edit::Edit;
use super::findings::{ALL_MEMBERS, LONGEST_MEMBER, MOST_KEYS, Member};
use super::grammar::Top;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Members {
    members: Vec<Member>,
    keys: Vec<String>,
    times: BTreeMap<String, u64>,
    bytes: usize,
    current: String,
    /// Where the last of the members starts.
    last_at: u64,
    /// Edits since the last key: where, how many bytes, what instead.
    edits: Vec<(u64, usize, Vec<u8>)>,
}

/// A value with more edits than this is left out.
const MOST_EDITS: usize = 1024;

impl Top for Members {
    fn key(&mut self, from: u64, key: &[u8]) {
        self.current = decoded(self.mended(from, key));
        self.edits.clear();
        if let Some(times) = self.times.get_mut(&self.current) {
            *times += 1;
        } else if self.keys.len() < MOST_KEYS {
            self.times.insert(self.current.clone(), 1);
            self.keys.push(self.current.clone());
        }
    }

    fn value(&mut self, from: u64, to: u64, text: Option<&[u8]>) {
        let length = (to - from) as usize;
        if let Some(text) = text
            && length <= LONGEST_MEMBER
            && self.bytes + length <= ALL_MEMBERS
            && self.edits.len() <= MOST_EDITS
        {
            self.bytes += length + self.current.len();
            self.last_at = from;
            let text = self.mended(from, text);
            self.members.push(Member {
                key: std::mem::take(&mut self.current),
                text,
            });
        }
    }
}

impl Members {
    /// To be told of every edit, before the value it lies in is complete.
    pub(super) fn edit(&mut self, edit: &Edit) {
        if self.edits.len() <= MOST_EDITS {
            self.edits.push((edit.offset, edit.old.len(), edit.new.clone()));
        }
    }

    /// Forgets the last member if a cut at `from` drops it: the end may have cut its digits.
    pub(super) fn cut(&mut self, from: u64) {
        if self.last_at >= from {
            self.members.pop();
        }
    }

    fn mended(&self, from: u64, text: &[u8]) -> String {
        let mut mended = Vec::with_capacity(text.len());
        let mut done = 0;
        for (offset, length, new) in &self.edits {
            let Some(at) = offset
                .checked_sub(from)
                .map(|at| at as usize)
                .filter(|at| (done..=text.len()).contains(at))
            else {
                continue;
            };
            mended.extend_from_slice(&text[done..at]);
            mended.extend_from_slice(new);
            done = (at + length).min(text.len());
        }
        mended.extend_from_slice(&text[done..]);
        // What is ill-formed has been replaced above.
        String::from_utf8_lossy(&mended).into_owned()
    }

    /// The keys that stand more than once, and how often.
    pub(super) fn repeated(&self) -> impl Iterator<Item = (&str, u64)> {
        self.times
            .iter()
            .filter(|(_, times)| **times > 1)
            .map(|(key, times)| (key.as_str(), *times))
    }

    /// The members, and the keys.
    pub(super) fn take(self) -> (Vec<Member>, Vec<String>) {
        (self.members, self.keys)
    }
}

/// A key as a reader sees it; as it stands in the file if its escapes are none.
fn decoded(key: String) -> String {
    if !key.contains('\\') {
        return key;
    }
    serde_json::from_str(&format!("\"{key}\"")).unwrap_or(key)
}
