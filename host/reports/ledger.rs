//! What a run has on disk at every moment: the CSV gets each row as its job ends; the JSON summary and the record are written anew
//! then, by a thread of their own, which takes no more than a twentieth of the time: ten thousand quick jobs do not write them
//! ten thousand times, and the last of them is on disk a moment after it ended.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::record::{JobRecord, Record, now};
use super::summary::{Csv, Header, Row, SUMMARY_CSV, SUMMARY_JSON, write_document, write_json};

struct State {
    csv: Csv,
    /// Without its jobs.
    record: Record,
    /// By their place in the plan.
    jobs: BTreeMap<usize, JobRecord>,
    is_new: bool,
    closed: bool,
    error: Option<io::Error>,
}

/// The files that say what a run has come to.
pub struct Ledger {
    csv_path: PathBuf,
    json_path: PathBuf,
    record_path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

impl Ledger {
    /// Begins all three in the folder `output`, the JSON summary at `json` if that is given. `jobs` are those that are over already.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn begin(
        record: Record,
        jobs: BTreeMap<usize, JobRecord>,
        output: &Path,
        json: Option<&Path>,
    ) -> io::Result<Self> {
        let csv_path = output.join(SUMMARY_CSV);
        let json_path = json.map_or_else(|| output.join(SUMMARY_JSON), Path::to_owned);
        if let Some(parent) = json_path.parent() {
            fs::create_dir_all(parent)?;
        }
        let ledger = Ledger {
            record_path: Record::path_in(output),
            state: Mutex::new(State {
                csv: Csv::write(&csv_path, jobs.values().map(|job| &job.row))?,
                record,
                jobs,
                is_new: false,
                closed: false,
                error: None,
            }),
            csv_path,
            json_path,
            changed: Condvar::new(),
        };
        ledger.write(&mut ledger.state())?;
        Ok(ledger)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the JSON summary is.
    pub fn json_path(&self) -> &Path {
        &self.json_path
    }

    /// Adds the job at `place` in the plan. `edits` are logs of edits that are known now, by the place of their trace in the record.
    pub fn add(&self, place: usize, job: JobRecord, edits: impl Iterator<Item = (usize, String)>) {
        let mut state = self.state();
        if let Err(error) = state.csv.add(&job.row) {
            state.error.get_or_insert(error);
        }
        for (trace, log) in edits {
            state.record.traces[trace].edits = Some(log);
        }
        state.jobs.insert(place, job);
        state.is_new = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Writes what is new as it comes, until [`Ledger::close`].
    pub fn keep_writing(&self) {
        let mut state = self.state();
        while !state.closed {
            if !state.is_new {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let start = Instant::now();
            if let Err(error) = self.write(&mut state) {
                state.error.get_or_insert(error);
            }
            let rest = (start.elapsed() * 20).max(Duration::from_millis(1));
            let until_closed = |state: &mut State| !state.closed;
            (state, _) = self
                .changed
                .wait_timeout_while(state, rest, until_closed)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No more will come.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Writes all three a last time, rows in the order of the plan.
    ///
    /// # Errors
    /// When they cannot be written, or could not be on the way.
    pub fn finish(self, peak_scratch: u64) -> io::Result<Vec<Row>> {
        let mut state = self.state();
        state.record.finished = true;
        state.record.ended = Some(now());
        state.record.peak_scratch_bytes = peak_scratch;
        Csv::write(&self.csv_path, state.jobs.values().map(|job| &job.row))?;
        self.write(&mut state)?;
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(state.jobs.values().map(|job| job.row.clone()).collect()),
        }
    }

    fn write(&self, state: &mut State) -> io::Result<()> {
        state.is_new = false;
        write_json(
            &self.json_path,
            &Header::from(&state.record),
            state.jobs.values().map(|job| &job.row),
        )?;
        state.record.jobs = state.jobs.values().cloned().collect();
        let written = write_document(&self.record_path, &state.record);
        state.record.jobs.clear();
        written
    }
}
