//! GPU events of a rocprofv3 trace: `buffer_records.kernel_dispatch`, whose `kernel_id` names an entry of `kernel_symbols`, and
//! `buffer_records.memory_copy`; timestamps in nanoseconds. All processes of the file are counted (TraceLens reads the first).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use super::activity::{Activity, Skip};
use super::collectives::{CollectiveKey, is_communication};
use super::decimal::{count, scaled};
use super::intervals::Interval;
use super::json::{Document, members, string};
use super::timeline::Class;
use super::trace::Direction;

/// Kernel symbols beyond so many of a process are forgotten; their kernels are called by number.
const MOST_SYMBOLS: usize = 1_000_000;

/// Counts the GPU events of a document. Gives the length in nanoseconds from the first process's `init_time` to the last one's
/// `fini_time`, if the trace says.
pub(super) fn read<R: Read>(
    document: &mut Document<R>,
    activity: &mut Activity,
    scratch: &Path,
) -> io::Result<Option<u64>> {
    let mut lifetime: Option<Interval> = None;
    if document.enter(b'{')? {
        while let Some(key) = document.key()? {
            if key == "rocprofiler-sdk-tool" && document.peek()? == Some(b'[') {
                document.enter(b'[')?;
                while document.element()? {
                    let mut process = Process::new(scratch);
                    process.read(document, activity)?;
                    process.late(activity)?;
                    if let Some((init, fini)) = process.lifetime {
                        let (first, last) = lifetime.unwrap_or((init, fini));
                        lifetime = Some((first.min(init), last.max(fini)));
                    }
                }
            } else {
                document.skip()?;
            }
        }
    }
    Ok(lifetime.map(|(init, fini)| fini.abs_diff(init)))
}

/// One process of the file.
struct Process<'a> {
    symbols: HashMap<u64, String>,
    lifetime: Option<Interval>,
    scratch: &'a Path,
    /// Dispatches whose symbol has not been met yet, in a file without a name. rocprofv3 writes symbols first.
    late: Option<BufWriter<File>>,
}

impl<'a> Process<'a> {
    fn new(scratch: &'a Path) -> Self {
        Process {
            symbols: HashMap::new(),
            lifetime: None,
            scratch,
            late: None,
        }
    }

    fn read<R: Read>(&mut self, document: &mut Document<R>, activity: &mut Activity) -> io::Result<()> {
        if !document.enter(b'{')? {
            return Ok(());
        }
        while let Some(key) = document.key()? {
            match key.as_str() {
                "metadata" => {
                    if let Some(text) = document.value()? {
                        self.lifetime = lifetime(text);
                    }
                }
                "kernel_symbols" => each(document, |text| {
                    if let Some((id, name)) = text.and_then(symbol)
                        && self.symbols.len() < MOST_SYMBOLS
                    {
                        self.symbols.insert(id, name);
                    }
                    Ok(())
                })?,
                "buffer_records" => self.records(document, activity)?,
                _ => document.skip()?,
            }
        }
        Ok(())
    }

    fn records<R: Read>(&mut self, document: &mut Document<R>, activity: &mut Activity) -> io::Result<()> {
        if !document.enter(b'{')? {
            return Ok(());
        }
        while let Some(key) = document.key()? {
            match key.as_str() {
                "kernel_dispatch" => each(document, |text| self.dispatch(text, activity))?,
                "memory_copy" => each(document, |text| memory_copy(text, activity))?,
                _ => document.skip()?,
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, text: Option<&str>, activity: &mut Activity) -> io::Result<()> {
        match dispatch(text) {
            Ok((id, interval)) => match self.symbols.get(&id) {
                Some(name) => kernel(name, interval, activity),
                None => self.set_aside(id, interval),
            },
            Err(why) => {
                activity.skip(why);
                Ok(())
            }
        }
    }

    fn set_aside(&mut self, id: u64, (start, end): Interval) -> io::Result<()> {
        let file = match &mut self.late {
            Some(file) => file,
            None => self.late.insert(BufWriter::new(tempfile::tempfile_in(self.scratch)?)),
        };
        file.write_all(&id.to_ne_bytes())?;
        file.write_all(&start.to_ne_bytes())?;
        file.write_all(&end.to_ne_bytes())
    }

    /// Counts the dispatches that were set aside, now that all symbols are known.
    fn late(&mut self, activity: &mut Activity) -> io::Result<()> {
        let Some(file) = self.late.take() else { return Ok(()) };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let length = file.stream_position()?;
        file.rewind()?;
        let mut file = BufReader::new(file);
        for _ in 0..length / 24 {
            let mut words = [[0; 8]; 3];
            file.read_exact(words.as_flattened_mut())?;
            let id = u64::from_ne_bytes(words[0]);
            let interval = (i64::from_ne_bytes(words[1]), i64::from_ne_bytes(words[2]));
            match self.symbols.get(&id) {
                Some(name) => kernel(name, interval, activity)?,
                None => kernel(&unnamed(id), interval, activity)?,
            }
        }
        Ok(())
    }
}

/// Calls `act` with the text of each element of the array that comes next; none stands for one that is too long.
fn each<R: Read>(document: &mut Document<R>, mut act: impl FnMut(Option<&str>) -> io::Result<()>) -> io::Result<()> {
    if document.enter(b'[')? {
        while document.element()? {
            act(document.value()?)?;
        }
    }
    Ok(())
}

/// The number of the kernel, and when it ran.
fn dispatch(text: Option<&str>) -> Result<(u64, Interval), Skip> {
    let [start, end, info] = members(
        text.ok_or(Skip::TooLong)?,
        ["start_timestamp", "end_timestamp", "dispatch_info"],
    )
    .ok_or(Skip::Unreadable)?;
    let [id] = info
        .and_then(|info| members(info, ["kernel_id"]))
        .ok_or(Skip::Unreadable)?;
    Ok((id.and_then(count).ok_or(Skip::Unreadable)?, interval(start, end)?))
}

fn interval(start: Option<&str>, end: Option<&str>) -> Result<Interval, Skip> {
    let nanoseconds = |text: Option<&str>| text.and_then(|text| scaled(text, 0)).ok_or(Skip::NoTime);
    let (start, end) = (nanoseconds(start)?, nanoseconds(end)?);
    if end < start {
        Err(Skip::Backwards)
    } else {
        Ok((start, end))
    }
}

fn kernel(name: &str, interval: Interval, activity: &mut Activity) -> io::Result<()> {
    activity.kernel(name, interval);
    let class = if is_communication(name) {
        activity.collective(CollectiveKey::of_kernel(name), interval);
        Class::Communication
    } else {
        Class::Computation
    };
    activity.span(class, interval)
}

fn memory_copy(text: Option<&str>, activity: &mut Activity) -> io::Result<()> {
    match copied(text) {
        Ok((direction, bytes, interval)) => {
            activity.copy(direction, bytes, interval);
            activity.span(Class::Memcpy, interval)
        }
        Err(why) => {
            activity.skip(why);
            Ok(())
        }
    }
}

/// From where to where, how many bytes if the record says, and when.
fn copied(text: Option<&str>) -> Result<(Direction, Option<u64>, Interval), Skip> {
    let names = ["start_timestamp", "end_timestamp", "operation", "bytes"];
    let [start, end, operation, bytes] = members(text.ok_or(Skip::TooLong)?, names).ok_or(Skip::Unreadable)?;
    let direction = operation.map_or(Direction::Unknown, direction);
    Ok((direction, bytes.and_then(count), interval(start, end)?))
}

/// `rocprofiler_memory_copy_operation_t` (rocprofiler-sdk fwd.h) by number, or by name as `strings.buffer_records` has it.
fn direction(operation: &str) -> Direction {
    match operation.trim_matches('"') {
        "1" | "MEMORY_COPY_HOST_TO_HOST" => Direction::HtoH,
        "2" | "MEMORY_COPY_HOST_TO_DEVICE" => Direction::HtoD,
        "3" | "MEMORY_COPY_DEVICE_TO_HOST" => Direction::DtoH,
        "4" | "MEMORY_COPY_DEVICE_TO_DEVICE" => Direction::DtoD,
        _ => Direction::Unknown,
    }
}

/// A symbol's number and name: the first name there is, in TraceLens's order (`extract_kernel_events` in `TraceLens/util.py`).
fn symbol(text: &str) -> Option<(u64, String)> {
    let [id, names @ ..] = members(
        text,
        [
            "kernel_id",
            "truncated_kernel_name",
            "formatted_kernel_name",
            "kernel_name",
        ],
    )?;
    let id = count(id?)?;
    let name = names
        .into_iter()
        .flatten()
        .filter_map(string)
        .find(|name| !name.is_empty());
    Some((id, name.map_or_else(|| unnamed(id), |name| name.into_owned())))
}

fn unnamed(id: u64) -> String {
    format!("unknown_kernel_{id}")
}

fn lifetime(metadata: &str) -> Option<Interval> {
    let [init, fini] = members(metadata, ["init_time", "fini_time"])?;
    let (init, fini) = (scaled(init?, 0)?, scaled(fini?, 0)?);
    (init < fini).then_some((init, fini))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::builtin::trace::TraceReport;

    fn report(json: &str) -> TraceReport {
        let folder = tempfile::tempdir().unwrap();
        let mut activity = Activity::new(folder.path());
        let total = read(&mut Document::new(json.as_bytes()), &mut activity, folder.path()).unwrap();
        activity.report(total).unwrap()
    }

    #[test]
    fn symbols_may_stand_behind_the_dispatches() {
        let report = report(
            r#"{"rocprofiler-sdk-tool": [{
            "buffer_records": {"hip_api": [{"x": 1}], "kernel_dispatch": [
                {"start_timestamp": 1000, "end_timestamp": 3000, "dispatch_info": {"kernel_id": 7, "grid_size": {"x": 1}}},
                {"start_timestamp": 5000, "end_timestamp": 9000, "dispatch_info": {"kernel_id": 7}},
                {"start_timestamp": 0, "end_timestamp": 1000, "dispatch_info": {"kernel_id": 8}}]},
            "kernel_symbols": [{"kernel_id": 7, "kernel_name": "raw", "formatted_kernel_name": "ncclDevKernel_Generic()"}]}]}"#,
        );
        let kernels: Vec<(&str, u64, u64)> = report
            .kernels
            .iter()
            .map(|kernel| (kernel.name.as_str(), kernel.runs.count, kernel.runs.total_ns))
            .collect();
        assert_eq!(
            kernels,
            [("ncclDevKernel_Generic()", 2, 6000), ("unknown_kernel_8", 1, 1000)]
        );
        let timeline = report.timeline.unwrap();
        assert_eq!(
            (timeline.communication_ns, timeline.computation_ns, timeline.total_ns),
            (6000, 1000, 9000)
        );
    }

    #[test]
    fn copies_and_the_whole_time() {
        let report = report(
            r#"{"rocprofiler-sdk-tool": [{"metadata": {"init_time": 100, "fini_time": 1100},
            "kernel_symbols": [{"kernel_id": 1, "truncated_kernel_name": "gemm", "formatted_kernel_name": "gemm<float>"}],
            "buffer_records": {"kernel_dispatch": [
                {"start_timestamp": 200, "end_timestamp": 400, "dispatch_info": {"kernel_id": 1}},
                {"start_timestamp": 400, "end_timestamp": 200, "dispatch_info": {"kernel_id": 1}},
                {"start_timestamp": null, "end_timestamp": 200, "dispatch_info": {"kernel_id": 1}},
                {"start_timestamp": 1, "end_timestamp": 2, "dispatch_info": {"kernel_id": "one"}},
                7],
              "memory_copy": [{"start_timestamp": 350, "end_timestamp": 500, "operation": 2, "bytes": 300}]}},
            {"metadata": {"init_time": 50, "fini_time": 60}}, null]}"#,
        );
        let timeline = report.timeline.unwrap();
        assert_eq!(
            (timeline.total_ns, timeline.busy_ns, timeline.kernel_ns()),
            (1050, 300, 200)
        );
        assert_eq!(
            (timeline.memcpy_ns, timeline.exposed_memcpy_ns, timeline.idle_ns()),
            (150, 100, 750)
        );
        assert_eq!(report.memory_copies[0].direction, Direction::HtoD);
        assert_eq!(report.memory_copies[0].gigabytes_per_second(), Some(2.0));
        assert_eq!(report.kernels[0].name, "gemm");
        assert_eq!(report.skipped_events.count(), 4);
    }
}
