//! What a part of a name can be.

/// A field of a pattern: a part of a name that differs from file to file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The global rank.
    Rank,
    /// A rank, or a process id; which one is told by the other files.
    RankOrPid,
    /// A rank within its node.
    LocalRank,
    /// The number of a node, from 0.
    NodeRank,
    /// A rank within a communicator.
    GroupRank,
    /// A coordinate along this axis of parallelism.
    Axis(&'static str),
    /// A step, iteration or batch.
    Step,
    /// A time stamp of one process.
    Time,
    /// A process id.
    Pid,
    /// A number that tells nothing.
    Number,
    /// A hash.
    Hash,
    /// A node's name.
    Host,
    /// What one capture's traces share.
    Capture,
    /// The stage of a capture: letters.
    Stage,
    /// Any text.
    Text,
    /// Any text or none that ends where a word ends.
    Words,
}

/// Steps have at most this many digits: longer numbers are times.
const STEP_DIGITS: usize = 9;
/// Seconds since 1970 have this many digits, finer stamps more.
const TIME_DIGITS: usize = 10;
const HASH_DIGITS: usize = 15;

impl Field {
    /// The field of that name in a pattern.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "rank" => Field::Rank,
            "rank-or-pid" => Field::RankOrPid,
            "local-rank" => Field::LocalRank,
            "node-rank" => Field::NodeRank,
            "group-rank" => Field::GroupRank,
            "step" => Field::Step,
            "time" => Field::Time,
            "pid" => Field::Pid,
            "number" => Field::Number,
            "hash" => Field::Hash,
            "host" => Field::Host,
            "capture" => Field::Capture,
            "stage" => Field::Stage,
            "text" => Field::Text,
            "..." => Field::Words,
            axis => Field::Axis(names::AXES.iter().find(|known| **known == axis)?),
        })
    }

    /// Whether it is text, which ends where what follows begins. The others are runs of digits or letters.
    pub fn is_text(self) -> bool {
        matches!(self, Field::Host | Field::Capture | Field::Text | Field::Words)
    }

    /// Whether `byte` can stand in a field that is no text.
    pub fn takes(self, byte: u8) -> bool {
        match self {
            Field::Stage => byte.is_ascii_alphabetic() || byte == b'_',
            Field::Hash => byte.is_ascii_hexdigit(),
            _ => byte.is_ascii_digit(),
        }
    }

    /// Whether the run `value` can be this field.
    pub fn fits(self, value: &str) -> bool {
        match self {
            Field::Time => value.len() >= TIME_DIGITS,
            Field::Hash => value.len() >= HASH_DIGITS,
            Field::Step => (1..=STEP_DIGITS).contains(&value.len()),
            Field::Number | Field::Stage => !value.is_empty(),
            _ => value.parse::<u32>().is_ok(),
        }
    }

    /// Whether two of them in one pattern stand for the same text.
    pub fn is_one_value(self) -> bool {
        matches!(self, Field::Host | Field::Pid)
    }

    /// Whether it differs between the ranks of one run.
    pub fn differs_by_rank(self) -> bool {
        matches!(
            self,
            Field::Rank
                | Field::RankOrPid
                | Field::LocalRank
                | Field::NodeRank
                | Field::GroupRank
                | Field::Axis(_)
                | Field::Time
                | Field::Pid
                | Field::Host
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_know_what_they_take() {
        assert_eq!(Field::named("dcp"), Some(Field::Axis("dcp")));
        assert_eq!(Field::named("rnak"), None);
        assert!(Field::Rank.fits("4294967295") && !Field::Rank.fits("4294967296") && !Field::Rank.fits(""));
        assert!(Field::Rank.fits("0003"));
        assert!(Field::Step.fits("000000042") && !Field::Step.fits("1724300000"));
        assert!(Field::Time.fits("1724300000") && !Field::Time.fits("42"));
        assert!(Field::Hash.takes(b'f') && !Field::Rank.takes(b'f'));
    }
}
