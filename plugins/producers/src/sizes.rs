//! From coordinates to a global rank, as a site's settings say.

/// The settings that the policy reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Every axis with its size.
    sizes: Vec<(&'static str, u32)>,
    /// The axes that make up the rank, slowest first. Empty: coordinates are not combined.
    order: Vec<&'static str>,
    /// How many ranks the axes of `order` make together.
    world_size: u32,
    /// GPUs, so ranks, of each node.
    gpus_per_node: Option<u32>,
}

/// What coordinates come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Combined {
    /// The global rank and the world size.
    Rank { rank: u32, world_size: u32 },
    /// No settings combine them.
    Unset,
    /// The settings do not fit them; the text says why.
    Misfit(String),
}

impl Sizes {
    /// Reads the settings' values; an empty one is not set.
    ///
    /// # Errors
    /// One sentence on the first that makes no sense.
    pub fn read(sizes: &str, order: &str, gpus_per_node: &str) -> Result<Self, String> {
        let mut read = Sizes::default();
        for entry in entries(sizes) {
            let (axis, size) = entry
                .split_once('=')
                .ok_or_else(|| format!("setting sizes: `{entry}` is not of the form axis=size, as in `tp=8,pp=2`"))?;
            let axis = known_axis(axis.trim()).ok_or_else(|| format!("setting sizes: there is no axis `{axis}`"))?;
            let size = positive(size.trim()).ok_or_else(|| format!("setting sizes: `{size}` is no size of {axis}"))?;
            if read.size(axis).is_some() {
                return Err(format!("setting sizes: {axis} stands twice"));
            }
            read.sizes.push((axis, size));
        }
        let mut world_size: u32 = 1;
        for entry in entries(order) {
            let axis = known_axis(entry).ok_or_else(|| format!("setting order: there is no axis `{entry}`"))?;
            let size = read
                .size(axis)
                .ok_or_else(|| format!("setting order: {axis} has no size in the setting sizes"))?;
            if read.order.contains(&axis) {
                return Err(format!("setting order: {axis} stands twice"));
            }
            world_size = world_size
                .checked_mul(size)
                .ok_or("setting sizes: together they make more than 4,294,967,295 ranks")?;
            read.order.push(axis);
        }
        if read.sizes.is_empty() != read.order.is_empty() {
            return Err("settings sizes and order belong together: set both, or neither".into());
        }
        read.world_size = world_size;
        if !gpus_per_node.trim().is_empty() {
            let gpus = positive(gpus_per_node.trim())
                .ok_or_else(|| format!("setting gpus-per-node: `{gpus_per_node}` is no number of GPUs"))?;
            read.gpus_per_node = Some(gpus);
        }
        Ok(read)
    }

    fn size(&self, axis: &str) -> Option<u32> {
        self.sizes
            .iter()
            .find(|(known, _)| *known == axis)
            .map(|(_, size)| *size)
    }

    /// The rank of the trace at these coordinates. An axis of `order` that is not among them counts as 0 if its size is 1.
    pub fn rank_at(&self, coordinates: &[(&'static str, u32)]) -> Combined {
        if self.order.is_empty() {
            return Combined::Unset;
        }
        for (axis, at) in coordinates {
            match self.size(axis) {
                None => return Combined::Misfit(format!("the setting sizes has none for {axis}")),
                Some(size) if *at >= size => {
                    return Combined::Misfit(format!("{axis} {at} is outside of the setting sizes, {axis}={size}"));
                }
                Some(_) => {}
            }
        }
        let mut rank = 0;
        for axis in &self.order {
            let size = self.size(axis).unwrap_or(1);
            let at = match coordinates.iter().find(|(known, _)| known == axis) {
                Some((_, at)) => *at,
                None if size == 1 => 0,
                None => return Combined::Misfit(format!("the name has no {axis}, and {axis} has size {size}")),
            };
            rank = rank * size + at;
        }
        Combined::Rank {
            rank,
            world_size: self.world_size,
        }
    }

    /// The rank of a local rank on a node, both from 0.
    pub fn rank_on_node(&self, node_rank: u32, local_rank: u32) -> Result<u32, String> {
        let Some(gpus) = self.gpus_per_node else {
            return Err("the setting gpus-per-node would make it a global rank".into());
        };
        if local_rank >= gpus {
            return Err(format!(
                "local rank {local_rank} is outside of the setting gpus-per-node, {gpus}"
            ));
        }
        node_rank
            .checked_mul(gpus)
            .and_then(|first| first.checked_add(local_rank))
            .ok_or_else(|| format!("node {node_rank} cannot be"))
    }

    /// The order as people write it.
    pub fn order(&self) -> String {
        self.order.join(",")
    }
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn known_axis(name: &str) -> Option<&'static str> {
    names::AXES.iter().find(|axis| axis.eq_ignore_ascii_case(name)).copied()
}

fn positive(number: &str) -> Option<u32> {
    number.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_become_ranks_in_the_order_set() {
        let sizes = Sizes::read("tp=4, pp=2,dp=3 ,ep=8", "dp,pp,tp", "").unwrap();
        let rank = |coordinates: &[(&'static str, u32)]| sizes.rank_at(coordinates);
        assert_eq!(
            rank(&[("tp", 3), ("pp", 1), ("dp", 2), ("ep", 7)]),
            Combined::Rank {
                rank: 23,
                world_size: 24
            }
        );
        assert_eq!(
            rank(&[("tp", 1), ("pp", 1), ("dp", 0)]),
            Combined::Rank {
                rank: 5,
                world_size: 24
            }
        );
        assert_eq!(
            rank(&[("tp", 4), ("pp", 1), ("dp", 0)]),
            Combined::Misfit("tp 4 is outside of the setting sizes, tp=4".into())
        );
        assert_eq!(
            rank(&[("tp", 1)]),
            Combined::Misfit("the name has no dp, and dp has size 3".into())
        );
        assert_eq!(
            rank(&[("cp", 0)]),
            Combined::Misfit("the setting sizes has none for cp".into())
        );
        let other_order = Sizes::read("tp=4,pp=2", "tp,pp", "").unwrap();
        assert_eq!(
            other_order.rank_at(&[("tp", 3), ("pp", 1)]),
            Combined::Rank { rank: 7, world_size: 8 }
        );
    }

    #[test]
    fn an_axis_of_size_one_need_not_stand_in_the_name() {
        let sizes = Sizes::read("tp=8,pp=1", "pp,tp", "").unwrap();
        assert_eq!(sizes.rank_at(&[("tp", 3)]), Combined::Rank { rank: 3, world_size: 8 });
        assert_eq!(Sizes::read("", "", "").unwrap().rank_at(&[("tp", 3)]), Combined::Unset);
    }

    #[test]
    fn nonsense_is_one_sentence() {
        for (sizes, order, gpus, error) in [
            (
                "tp8",
                "tp",
                "",
                "setting sizes: `tp8` is not of the form axis=size, as in `tp=8,pp=2`",
            ),
            ("xp=8", "tp", "", "setting sizes: there is no axis `xp`"),
            ("tp=0", "tp", "", "setting sizes: `0` is no size of tp"),
            ("tp=-1", "tp", "", "setting sizes: `-1` is no size of tp"),
            ("tp=8,tp=8", "tp", "", "setting sizes: tp stands twice"),
            ("tp=8", "tp,tp", "", "setting order: tp stands twice"),
            (
                "tp=8",
                "pp,tp",
                "",
                "setting order: pp has no size in the setting sizes",
            ),
            ("tp=8", "rank", "", "setting order: there is no axis `rank`"),
            (
                "tp=8",
                "",
                "",
                "settings sizes and order belong together: set both, or neither",
            ),
            ("", "tp", "", "setting order: tp has no size in the setting sizes"),
            (
                "tp=4294967295,pp=2",
                "pp,tp",
                "",
                "setting sizes: together they make more than 4,294,967,295 ranks",
            ),
            ("", "", "eight", "setting gpus-per-node: `eight` is no number of GPUs"),
        ] {
            assert_eq!(Sizes::read(sizes, order, gpus), Err(error.to_owned()));
        }
    }

    #[test]
    fn nodes_and_local_ranks_make_a_rank() {
        let sizes = Sizes::read("", "", "8").unwrap();
        assert_eq!(sizes.rank_on_node(3, 2), Ok(26));
        assert!(sizes.rank_on_node(3, 8).is_err() && sizes.rank_on_node(u32::MAX, 0).is_err());
        assert!(Sizes::default().rank_on_node(0, 0).is_err());
    }
}
