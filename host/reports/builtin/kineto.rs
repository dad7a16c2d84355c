//! GPU events of a Kineto trace: complete events (`"ph": "X"`) of the categories `kernel`, `gpu_memcpy` and `gpu_memset`, times in
//! microseconds (facts/tracelens.md section 5). Older traces write `Kernel`, `Memcpy`, `Memset`.

use std::io::{self, Read};

use memchr::memmem;

use super::activity::{Activity, Skip};
use super::collectives::{CollectiveKey, is_communication};
use super::decimal::{count, scaled};
use super::intervals::Interval;
use super::json::{Document, members, string};
use super::timeline::Class;
use super::trace::Direction;

/// Counts the GPU events of a document: an object with `traceEvents`, or the bare array of them that older exporters write.
pub(super) fn read<R: Read>(document: &mut Document<R>, activity: &mut Activity) -> io::Result<()> {
    if document.peek()? == Some(b'[') {
        return events(document, activity);
    }
    if document.enter(b'{')? {
        while let Some(key) = document.key()? {
            if key == "traceEvents" {
                events(document, activity)?;
            } else {
                document.skip()?;
            }
        }
    }
    Ok(())
}

fn events<R: Read>(document: &mut Document<R>, activity: &mut Activity) -> io::Result<()> {
    if document.enter(b'[')? {
        let candidates = Candidates::new();
        while document.element()? {
            match document.value()? {
                Some(text) if candidates.may_be(text) => event(text, activity)?,
                Some(_) => {}
                None => activity.skip(Skip::TooLong),
            }
        }
    }
    Ok(())
}

/// Tells quickly that an event is of none of the categories, which most are.
struct Candidates {
    words: [memmem::Finder<'static>; 3],
    escape: memmem::Finder<'static>,
}

impl Candidates {
    fn new() -> Self {
        Candidates {
            words: ["ernel", "emcpy", "emset"].map(memmem::Finder::new),
            escape: memmem::Finder::new("\\u"),
        }
    }

    fn may_be(&self, text: &str) -> bool {
        // An escape may spell any letter.
        self.words
            .iter()
            .chain([&self.escape])
            .any(|word| word.find(text.as_bytes()).is_some())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Category {
    Kernel,
    Memcpy,
    Memset,
}

fn category(text: &str) -> Option<Category> {
    Some(match &*string(text)? {
        "kernel" | "Kernel" => Category::Kernel,
        "gpu_memcpy" | "Memcpy" => Category::Memcpy,
        "gpu_memset" | "Memset" => Category::Memset,
        _ => return None,
    })
}

fn event(text: &str, activity: &mut Activity) -> io::Result<()> {
    let Some([ph, cat, name, ts, dur, args]) = members(text, ["ph", "cat", "name", "ts", "dur", "args"]) else {
        return Ok(());
    };
    let Some(category) = cat.and_then(category) else {
        return Ok(());
    };
    if ph.and_then(string).as_deref() != Some("X") {
        return Ok(());
    }
    let interval = match interval(ts, dur) {
        Ok(interval) => interval,
        Err(why) => {
            activity.skip(why);
            return Ok(());
        }
    };
    let name = name.and_then(string).unwrap_or_default();
    let class = match category {
        Category::Kernel => {
            activity.kernel(&name, interval);
            if let Some(direction) = legacy_copy(&name) {
                activity.copy(direction, None, interval);
                Class::Memcpy
            } else if is_communication(&name) {
                activity.collective(CollectiveKey::of_kineto(&name, args), interval);
                Class::Communication
            } else {
                Class::Computation
            }
        }
        Category::Memcpy => {
            let [kind, bytes] = args
                .and_then(|args| members(args, ["kind", "bytes"]))
                .unwrap_or_default();
            let kind = kind.and_then(string).unwrap_or_default();
            let direction = direction(&kind)
                .or_else(|| direction(&name))
                .unwrap_or(Direction::Unknown);
            activity.copy(direction, bytes.and_then(count), interval);
            Class::Memcpy
        }
        Category::Memset => {
            let [bytes] = args.and_then(|args| members(args, ["bytes"])).unwrap_or_default();
            activity.copy(Direction::Memset, bytes.and_then(count), interval);
            // A collective's by its name, as in TraceLens.
            if is_communication(&name) {
                Class::Communication
            } else {
                Class::Computation
            }
        }
    };
    activity.span(class, interval)
}

fn interval(ts: Option<&str>, dur: Option<&str>) -> Result<Interval, Skip> {
    let nanoseconds = |text: Option<&str>| text.and_then(|text| scaled(text, 3)).ok_or(Skip::NoTime);
    let (start, duration) = (nanoseconds(ts)?, nanoseconds(dur)?);
    if duration < 0 {
        return Err(Skip::Backwards);
    }
    Ok((start, start.checked_add(duration).ok_or(Skip::NoTime)?))
}

/// `Memcpy HtoD (Pinned -> Device)`, `HtoD`, and roctracer's `CopyHostToDevice`.
fn direction(name: &str) -> Option<Direction> {
    let word = name.strip_prefix("Memcpy ").unwrap_or(name).split(' ').next()?;
    Some(match word {
        "HtoD" | "CopyHostToDevice" => Direction::HtoD,
        "DtoH" | "CopyDeviceToHost" => Direction::DtoH,
        "DtoD" | "CopyDeviceToDevice" => Direction::DtoD,
        "HtoH" | "CopyHostToHost" => Direction::HtoH,
        "PtoP" => Direction::PtoP,
        _ => return None,
    })
}

/// Copies that ROCm 7.1 and older call kernels (`_ROCM_LEGACY_MEMCPY_NAMES` in `TraceLens/util.py`). Its fills are computation,
/// as kernels are.
fn legacy_copy(name: &str) -> Option<Direction> {
    match name.strip_suffix(".kd").unwrap_or(name) {
        "MEMORY_COPY_HOST_TO_DEVICE" => Some(Direction::HtoD),
        "MEMORY_COPY_DEVICE_TO_HOST" => Some(Direction::DtoH),
        "MEMORY_COPY_DEVICE_TO_DEVICE" => Some(Direction::DtoD),
        "__amd_rocclr_copyBuffer"
        | "__amd_rocclr_copyBufferRect"
        | "__amd_rocclr_copyBufferAligned"
        | "__amd_rocclr_copyBufferRectAligned" => Some(Direction::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::builtin::trace::TraceReport;

    fn report(events: &str) -> TraceReport {
        let folder = tempfile::tempdir().unwrap();
        let mut activity = Activity::new(folder.path());
        let json = format!(r#"{{"schemaVersion": 1, "traceEvents": [{events}], "traceName": "x"}}"#);
        read(&mut Document::new(json.as_bytes()), &mut activity).unwrap();
        activity.report(None).unwrap()
    }

    #[test]
    fn odd_members_do_not_cost_the_trace() {
        let report = report(
            r#"{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2.5, "args": {"name": "not this"}},
            {"ph": "X", "cat": "\u004bernel", "name": "gemm", "ts": "4.250", "dur": "1.5"},
            {"ph": "X", "cat": ["kernel"], "name": {"a": 1}, "dur": null},
            {"ph": "i", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 100},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 100},
            {}, 7, [{"cat": "kernel"}], "kernel", null,
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1},
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": null, "dur": 1},
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1e18, "dur": 1},
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 9223372036854775.0, "dur": 1},
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 10, "dur": -1}"#,
        );
        assert_eq!(report.kernels.len(), 1);
        let runs = report.kernels[0].runs;
        assert_eq!(
            (runs.count, runs.total_ns, runs.min_ns, runs.max_ns),
            (2, 4000, 1500, 2500)
        );
        assert_eq!(
            report.timeline.map(|timeline| (timeline.total_ns, timeline.busy_ns)),
            Some((4750, 4000))
        );
        assert_eq!(
            report.skipped_events.reasons(),
            "1 that end before they start, 4 without a usable start or duration"
        );
    }

    #[test]
    fn copies_are_told_by_direction() {
        let report = report(
            r#"{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 0, "dur": 2, "args": {"bytes": 4000}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "ts": 1, "dur": 2, "args": {"kind": "HtoD"}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "CopyDeviceToDevice", "ts": 40, "dur": 4},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy ???", "ts": 9, "dur": 1, "args": {"bytes": "many"}},
            {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "ts": 20, "dur": 1, "args": {"bytes": 8}},
            {"ph": "X", "cat": "kernel", "name": "__amd_rocclr_copyBuffer.kd", "ts": 30, "dur": 1}"#,
        );
        let copies: Vec<_> = report
            .memory_copies
            .iter()
            .map(|copies| {
                (
                    copies.direction,
                    copies.runs.count,
                    copies.bytes,
                    copies.gigabytes_per_second(),
                )
            })
            .collect();
        assert_eq!(
            copies,
            [
                (Direction::HtoD, 2, 4000, Some(2.0)),
                (Direction::DtoD, 1, 0, None),
                (Direction::Unknown, 2, 0, None),
                (Direction::Memset, 1, 8, Some(0.008)),
            ]
        );
        let timeline = report.timeline.unwrap();
        assert_eq!(
            (timeline.memcpy_ns, timeline.computation_ns, timeline.exposed_memcpy_ns),
            (9000, 1000, 9000)
        );
    }
}
