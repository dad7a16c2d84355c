//! The members of the root object, gathered as the walk passes them.

use super::grammar::Top;
use super::scan::{ALL_MEMBERS, LONGEST_MEMBER, MOST_KEYS, Member};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Members {
    members: Vec<Member>,
    keys: Vec<String>,
    times: BTreeMap<String, u64>,
    bytes: usize,
    current: String,
}

impl Top for Members {
    fn key(&mut self, key: &[u8]) {
        self.current = decoded(key);
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
        {
            self.bytes += length + self.current.len();
            let text = String::from_utf8_lossy(text).into_owned();
            self.members.push(Member {
                key: std::mem::take(&mut self.current),
                text,
            });
        }
    }
}

impl Members {
    /// The members, the keys, and those of the keys that stand more than once, with their number.
    pub(super) fn take(self) -> (Vec<Member>, Vec<String>, Vec<(String, u64)>) {
        let repeated = self.times.into_iter().filter(|(_, times)| *times > 1).collect();
        (self.members, self.keys, repeated)
    }
}

/// A key as a reader sees it; as it stands in the file if its escapes are none.
fn decoded(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    if !text.contains('\\') {
        return text.into_owned();
    }
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.into_owned())
}
