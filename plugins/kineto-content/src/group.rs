//! The default process group: the one that all ranks of a job belong to, so its size is the world size.

use serde_json::Value;

/// What PyTorch calls the default group in `pg_desc` and in "Process Group Description".
pub const DEFAULT: &str = "default_pg";

/// The default group as one place describes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// How many ranks it has.
    pub size: Option<u32>,
    /// Its ranks, where all of them are listed.
    pub ranks: Option<Vec<u32>>,
}

impl Group {
    /// The default group in the `pg_config` of a `distributedInfo`.
    pub fn of_config(config: &Value) -> Option<Self> {
        let groups = config.as_array()?;
        let group = groups.iter().find(|group| group["pg_desc"] == DEFAULT)?;
        let size = group["pg_size"].as_u64().and_then(|size| u32::try_from(size).ok());
        let ranks = match &group["ranks"] {
            Value::Array(ranks) => ranks
                .iter()
                .map(|rank| rank.as_u64().and_then(|rank| u32::try_from(rank).ok()))
                .collect(),
            Value::String(text) => listed(text),
            _ => None,
        };
        Some(Group { size, ranks })
    }

    /// The world size that a rank of this group has, `world_size` being what its source says besides.
    ///
    /// # Errors
    /// What does not agree.
    pub fn world_size_of(&self, rank: u32, world_size: Option<u32>) -> Result<Option<u32>, String> {
        let count = self.ranks.as_ref().map(|ranks| ranks.len() as u64);
        if let (Some(size), Some(count)) = (self.size, count)
            && u64::from(size) != count
        {
            return Err(format!("{DEFAULT} has size {size} but {count} ranks"));
        }
        let size = self.size.or(count.and_then(|count| u32::try_from(count).ok()));
        if let (Some(world_size), Some(size)) = (world_size, size)
            && world_size != size
        {
            return Err(format!("world size {world_size}, but {DEFAULT} has size {size}"));
        }
        if self.ranks.as_ref().is_some_and(|ranks| !ranks.contains(&rank)) {
            return Err(format!("rank {rank} is none of the ranks of {DEFAULT}"));
        }
        Ok(world_size.or(size))
    }
}

/// The ranks in a text like `[0, 1, 2]`. None if it is cut short, as Kineto does behind 30 entries (`..., 28, ..., 31]`), or empty,
/// as in events that only wait.
pub fn listed(text: &str) -> Option<Vec<u32>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    inner.split(',').map(|rank| rank.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ranks_are_an_array_or_a_text() {
        let group = |ranks: Value| {
            let config = json!([{"pg_desc": "undefined", "ranks": [5]}, {"pg_desc": "default_pg", "pg_size": 2, "ranks": ranks}]);
            Group::of_config(&config).unwrap()
        };
        let two = Group {
            size: Some(2),
            ranks: Some(vec![0, 1]),
        };
        assert_eq!(group(json!([0, 1])), two);
        assert_eq!(group(json!("[0, 1]")), two);
        for odd in [
            json!("[0, 1, ..., 31]"),
            json!("[]"),
            json!("0, 1"),
            json!([0, -1]),
            json!(null),
            json!({}),
        ] {
            assert_eq!(group(odd).ranks, None);
        }
        assert_eq!(Group::of_config(&json!({"0": {}})), None);
        assert_eq!(Group::of_config(&json!([7, {"pg_desc": "mesh_tp"}])), None);
    }

    #[test]
    fn size_ranks_and_world_must_agree() {
        let group = |size, ranks: Option<&[u32]>| Group {
            size,
            ranks: ranks.map(<[u32]>::to_vec),
        };
        assert_eq!(group(Some(2), Some(&[0, 1])).world_size_of(1, Some(2)), Ok(Some(2)));
        assert_eq!(group(None, Some(&[0, 1])).world_size_of(1, None), Ok(Some(2)));
        assert_eq!(group(Some(64), None).world_size_of(63, None), Ok(Some(64)));
        assert_eq!(group(None, None).world_size_of(3, Some(4)), Ok(Some(4)));
        assert_eq!(
            group(Some(3), Some(&[0, 1])).world_size_of(1, None),
            Err("default_pg has size 3 but 2 ranks".into())
        );
        assert_eq!(
            group(Some(2), Some(&[0, 1])).world_size_of(1, Some(8)),
            Err("world size 8, but default_pg has size 2".into())
        );
        assert_eq!(
            group(Some(2), Some(&[0, 1])).world_size_of(2, Some(2)),
            Err("rank 2 is none of the ranks of default_pg".into())
        );
    }
}
