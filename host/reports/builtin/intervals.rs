//! Unions of any number of intervals in memory that does not grow with it.
//!
//! Events of a trace stand in no order of time. Intervals are gathered in a buffer; when it is full they are sorted and those
//! that touch are joined; what is then still more than half a buffer goes to a scratch file as one sorted run. At the end the
//! runs are merged, which gives the union in order: exact, however the intervals came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// From a start up to an end, in nanoseconds; the end is not before the start.
pub(super) type Interval = (i64, i64);

/// Bytes of an interval in a run.
const RECORD: usize = 16;

/// How much is kept in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Intervals in the buffer.
    pub buffer: usize,
    /// Runs merged at once.
    pub fan_in: usize,
    /// Intervals read at once from each run.
    pub read: usize,
}

impl Default for Budget {
    /// One MiB for the buffer, one for merging.
    fn default() -> Self {
        Budget {
            buffer: 1 << 16,
            fan_in: 256,
            read: 256,
        }
    }
}

/// Intervals to be joined.
#[derive(Debug)]
pub(super) struct Union {
    buffer: Vec<Interval>,
    budget: Budget,
    folder: PathBuf,
    runs: Option<Runs>,
}

/// Sorted runs in a file that has no name, so that nothing is left of it however the process ends.
#[derive(Debug)]
struct Runs {
    file: BufWriter<File>,
    /// Intervals before the end of each run.
    ends: Vec<u64>,
}

impl Runs {
    fn in_folder(folder: &Path) -> io::Result<Runs> {
        Ok(Runs {
            file: BufWriter::with_capacity(1 << 16, tempfile::tempfile_in(folder)?),
            ends: Vec::new(),
        })
    }

    fn write(&mut self, (start, end): Interval) -> io::Result<()> {
        self.file.write_all(&start.to_ne_bytes())?;
        self.file.write_all(&end.to_ne_bytes())
    }

    fn end_run(&mut self, length: u64) {
        self.ends.push(self.ends.last().copied().unwrap_or(0) + length);
    }

    fn into_file(self) -> io::Result<Rc<File>> {
        Ok(Rc::new(self.file.into_inner().map_err(io::IntoInnerError::into_error)?))
    }
}

impl Union {
    /// None so far; scratch files go to `folder`.
    pub(super) fn new(folder: &Path, budget: Budget) -> Self {
        Union {
            buffer: Vec::new(),
            budget,
            folder: folder.to_owned(),
            runs: None,
        }
    }

    pub(super) fn add(&mut self, interval: Interval) -> io::Result<()> {
        self.buffer.push(interval);
        if self.buffer.len() >= self.budget.buffer {
            join(&mut self.buffer);
            if self.buffer.len() > self.budget.buffer / 2 {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => self.runs.insert(Runs::in_folder(&self.folder)?),
        };
        for &interval in &self.buffer {
            runs.write(interval)?;
        }
        runs.end_run(self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }

    /// The union, in order.
    pub(super) fn joined(mut self) -> io::Result<Joined> {
        join(&mut self.buffer);
        let Some(mut runs) = self.runs.take() else {
            return Joined::new(vec![Source::memory(self.buffer)]);
        };
        while runs.ends.len() > self.budget.fan_in {
            let mut fewer = Runs::in_folder(&self.folder)?;
            let runs_at = bounds(&runs.ends);
            let file = runs.into_file()?;
            for batch in runs_at.chunks(self.budget.fan_in) {
                let mut length = 0;
                let mut joined = Joined::new(sources(&file, batch, self.budget.read))?;
                while let Some(interval) = joined.next()? {
                    fewer.write(interval)?;
                    length += 1;
                }
                fewer.end_run(length);
            }
            runs = fewer;
        }
        let runs_at = bounds(&runs.ends);
        let mut all = sources(&runs.into_file()?, &runs_at, self.budget.read);
        all.push(Source::memory(self.buffer));
        Joined::new(all)
    }
}

/// Sorts, and joins those that overlap or touch.
fn join(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
}

fn bounds(ends: &[u64]) -> Vec<(u64, u64)> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied()).collect()
}

fn sources(file: &Rc<File>, runs: &[(u64, u64)], read: usize) -> Vec<Source> {
    let source = |&(from, to): &(u64, u64)| Source {
        file: Some(Rc::clone(file)),
        from,
        to,
        read,
        ready: Vec::new(),
        at: 0,
    };
    runs.iter().map(source).collect()
}

/// One sorted run.
struct Source {
    file: Option<Rc<File>>,
    from: u64,
    to: u64,
    read: usize,
    ready: Vec<Interval>,
    at: usize,
}

impl Source {
    fn memory(ready: Vec<Interval>) -> Source {
        Source {
            file: None,
            from: 0,
            to: 0,
            read: 0,
            ready,
            at: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<Interval>> {
        if self.at == self.ready.len() {
            let count = (self.to - self.from).min(self.read as u64) as usize;
            let Some(file) = self.file.as_ref().filter(|_| count > 0) else {
                return Ok(None);
            };
            let mut bytes = vec![0; count * RECORD];
            file.read_exact_at(&mut bytes, self.from * RECORD as u64)?;
            self.from += count as u64;
            self.at = 0;
            self.ready.clear();
            self.ready.extend(
                bytes
                    .as_chunks::<8>()
                    .0
                    .chunks_exact(2)
                    .map(|pair| (i64::from_ne_bytes(pair[0]), i64::from_ne_bytes(pair[1]))),
            );
        }
        self.at += 1;
        Ok(Some(self.ready[self.at - 1]))
    }
}

/// Intervals in order, none of which touches the next.
pub(super) struct Joined {
    sources: Vec<Source>,
    heads: BinaryHeap<Reverse<(Interval, usize)>>,
}

impl Joined {
    fn new(mut sources: Vec<Source>) -> io::Result<Joined> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            if let Some(head) = source.next()? {
                heads.push(Reverse((head, index)));
            }
        }
        Ok(Joined { sources, heads })
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Interval>> {
        let Some((start, mut end)) = self.pop()? else {
            return Ok(None);
        };
        while let Some(Reverse((next, _))) = self.heads.peek()
            && next.0 <= end
        {
            end = end.max(next.1);
            self.pop()?;
        }
        Ok(Some((start, end)))
    }

    fn pop(&mut self) -> io::Result<Option<Interval>> {
        let Some(Reverse((interval, index))) = self.heads.pop() else {
            return Ok(None);
        };
        if let Some(head) = self.sources[index].next()? {
            self.heads.push(Reverse((head, index)));
        }
        Ok(Some(interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule of TraceLens's `GPUEventAnalyser.merge_intervals`, word for word.
    fn naive(mut intervals: Vec<Interval>) -> Vec<Interval> {
        intervals.sort_by_key(|interval| interval.0);
        let mut merged: Vec<Interval> = Vec::new();
        for (start, end) in intervals {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        merged
    }

    proptest! {
        #[test]
        fn equals_the_naive_union(
            intervals in prop::collection::vec((-2000_i64..2000, 0_i64..40), 0..600),
            buffer in 1_usize..50, fan_in in 2_usize..5, read in 1_usize..8,
        ) {
            let intervals: Vec<Interval> = intervals.into_iter().map(|(start, length)| (start, start + length)).collect();
            let folder = tempfile::tempdir().unwrap();
            let mut union = Union::new(folder.path(), Budget { buffer, fan_in, read });
            for &interval in &intervals {
                union.add(interval).unwrap();
            }
            let mut joined = union.joined().unwrap();
            let mut got = Vec::new();
            while let Some(interval) = joined.next().unwrap() {
                got.push(interval);
            }
            prop_assert_eq!(got, naive(intervals));
        }
    }

    #[test]
    fn many_runs_are_merged_in_passes() {
        let folder = tempfile::tempdir().unwrap();
        let mut union = Union::new(
            folder.path(),
            Budget {
                buffer: 4,
                fan_in: 3,
                read: 2,
            },
        );
        for start in (0..4000).rev() {
            union.add((start * 10, start * 10 + 5)).unwrap();
        }
        assert!(union.runs.as_ref().unwrap().ends.len() > 900);
        let mut joined = union.joined().unwrap();
        for start in 0..4000 {
            assert_eq!(joined.next().unwrap(), Some((start * 10, start * 10 + 5)));
        }
        assert_eq!(joined.next().unwrap(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
