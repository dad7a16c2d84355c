//! The embedded reporter: kernels by name, straight from the mended bytes of a trace, without a copy on disk. It needs no Python,
//! and memory only for the names.

mod kineto;
mod rocprof;

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeSeed;

use crate::bytes::MendingReader;
use crate::scratch::Scratch;
use crate::traces::{Kind, Run};

/// What is known of the kernels of one name. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// All its runs together.
    pub total_us: f64,
    /// The mean run.
    pub mean_us: f64,
    /// The shortest run.
    pub min_us: f64,
    /// The longest run.
    pub max_us: f64,
    /// Its part of the total of all kernels, 0 to 1.
    pub share: f64,
}

/// What is kept of any number of runs. Times are in microseconds.
#[derive(Debug, Clone)]
struct Sums {
    count: u64,
    total: f64,
    min: f64,
    max: f64,
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            count: 0,
            total: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Sums {
    fn of_one(microseconds: f64) -> Self {
        Sums {
            count: 1,
            total: microseconds,
            min: microseconds,
            max: microseconds,
        }
    }

    fn merge(&mut self, other: &Sums) {
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Adds up kernel runs by name.
#[derive(Debug, Default)]
pub struct Tally {
    by_name: HashMap<String, Sums>,
}

impl Tally {
    fn add(&mut self, name: &str, sums: &Sums) {
        match self.by_name.get_mut(name) {
            Some(known) => known.merge(sums),
            None => {
                self.by_name.insert(name.to_owned(), sums.clone());
            }
        }
    }

    /// Adds the kernels of a whole trace.
    pub fn add_all(&mut self, kernels: &[Kernel]) {
        for Kernel {
            name,
            count,
            total_us,
            min_us,
            max_us,
            ..
        } in kernels
        {
            self.add(
                name,
                &Sums {
                    count: *count,
                    total: *total_us,
                    min: *min_us,
                    max: *max_us,
                },
            );
        }
    }

    /// The kernels, the one with the largest total first.
    pub fn kernels(self) -> Vec<Kernel> {
        let all: f64 = self.by_name.values().map(|sums| sums.total).sum();
        let mut kernels: Vec<Kernel> = self
            .by_name
            .into_iter()
            .map(|(name, sums)| Kernel {
                name,
                count: sums.count,
                total_us: sums.total,
                mean_us: sums.total / sums.count as f64,
                min_us: sums.min,
                max_us: sums.max,
                share: if all > 0.0 { sums.total / all } else { 0.0 },
            })
            .collect();
        kernels.sort_by(|a, b| b.total_us.total_cmp(&a.total_us).then_with(|| a.name.cmp(&b.name)));
        kernels
    }
}

/// The kernels of trace `index`.
///
/// # Errors
/// When the trace cannot be read or, mended, is still no JSON that its kind's reader understands.
pub fn kernels(run: &Run, index: usize) -> Result<Vec<Kernel>> {
    let trace = &run.traces[index];
    let path = trace.display_path();
    let mended =
        MendingReader::new(run.open(index)?, &trace.findings).with_context(|| format!("cannot read {path}"))?;
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 18, mended));
    let mut tally = Tally::default();
    let read = match trace.kind {
        Kind::Kineto => kineto::Document(&mut tally).deserialize(&mut json),
        Kind::Rocprof => rocprof::Document(&mut tally).deserialize(&mut json),
        _ => bail!("the embedded reporter reads Kineto and rocprofv3 JSON, {path} is neither"),
    };
    read.and_then(|()| json.end())
        .with_context(|| format!("cannot read {path}"))?;
    Ok(tally.kernels())
}

/// Writes kernels as CSV, whole or not at all.
///
/// # Errors
/// When the file cannot be written.
pub fn write(kernels: &[Kernel], path: &Path) -> Result<()> {
    let write = || -> io::Result<()> {
        let (file, scratch) = Scratch::file_beside(path)?;
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(["name", "count", "total_us", "mean_us", "min_us", "max_us", "share"])?;
        for kernel in kernels {
            csv.write_record([
                &kernel.name,
                &kernel.count.to_string(),
                &format!("{:.3}", kernel.total_us),
                &format!("{:.3}", kernel.mean_us),
                &format!("{:.3}", kernel.min_us),
                &format!("{:.3}", kernel.max_us),
                &format!("{:.6}", kernel.share),
            ])?;
        }
        csv.flush()?;
        scratch.persist(path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
