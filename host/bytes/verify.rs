//! Whether a mended copy is clean, told from the stretches around its edits.
//!
//! All else in the copy is byte for byte what the scan of the original passed without a flaw. A pass that comes out of a stretch
//! standing as the scan of the original did there finds in what follows what that scan found: nothing.

use super::edit::{Edit, Sink};
use super::ending::Finished;
use super::findings::Findings;
use super::flaw::Flaw;
use super::machine::{Machine, Step};
use super::options::{Check, Options};
use super::scan::scan;
use super::standing::Mark;
use super::window::Reach;
use std::io::{self, Read, Seek, SeekFrom};

/// More stretches than this are not kept: the whole copy is scanned then.
const MOST: usize = 1024;
/// The start of a character that a mark may stand in is shorter than this.
const LONGEST_CHARACTER: u64 = 4;

/// A part of a text: what stands before and after it needs no second look.
#[derive(Clone, Debug)]
struct Stretch {
    from: Mark,
    /// None: to the end.
    to: Option<Mark>,
}

/// The stretches of a text that hold its edits, gathered while it is scanned.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches {
    stretches: Vec<Stretch>,
    /// The last two places from which the scan could be taken up again. Edits lie in the window, which reaches back less far
    /// than the older one.
    marks: [Option<Mark>; 2],
    /// Where the last edit ends.
    edited_to: u64,
    /// Whether an edit lies in no stretch.
    missed: bool,
}

impl Stretches {
    pub(super) fn mark(&mut self, mark: Mark) {
        if let Some(last) = self.stretches.last_mut()
            && last.to.is_none()
            && self.edited_to + LONGEST_CHARACTER <= mark.at
        {
            last.to = Some(mark.clone());
        }
        let [_, last] = std::mem::take(&mut self.marks);
        self.marks = [last, Some(mark)];
    }

    pub(super) fn edit(&mut self, edit: &Edit) {
        self.cover(edit.offset);
        self.edited_to = self.edited_to.max(edit.offset + edit.old.len() as u64);
    }

    /// All from `at` on is replaced, and the edits there with it.
    pub(super) fn close(&mut self, at: u64) {
        self.stretches.retain(|stretch| stretch.from.at <= at);
        self.cover(at);
        if let Some(last) = self.stretches.last_mut() {
            last.to = None;
        }
    }

    /// Makes sure that a stretch has `at` in it, and what follows up to the next mark.
    fn cover(&mut self, at: u64) {
        if let Some(last) = self.stretches.last_mut()
            && last.to.as_ref().is_none_or(|to| to.at > at)
        {
            // An edit before the stretch would be one too far back.
            self.missed |= last.from.at > at;
            last.to = None;
            return;
        }
        let before = self.marks.iter().rev().flatten().find(|mark| mark.at <= at);
        match before {
            Some(mark) if self.stretches.len() < MOST => self.stretches.push(Stretch {
                from: mark.clone(),
                to: None,
            }),
            _ => self.missed = true,
        }
    }

    /// To be kept for the copy; none if they do not hold all edits.
    pub(super) fn finish(mut self) -> Option<Stretches> {
        self.marks = Default::default();
        (!self.missed).then_some(self)
    }
}

/// Whether `copy`, which [`mend`](super::mend) made of the scanned input, is clean: none if it is, otherwise what is wrong with
/// it, in one line. `copy` is plain text, read where edits were made; if those are too many, all of it.
///
/// Errors are those of `copy`.
pub fn verify<C: Read + Seek + Send>(copy: C, findings: &Findings) -> io::Result<Option<String>> {
    verify_within(copy, findings, Reach::default())
}

pub(super) fn verify_within<C: Read + Seek + Send>(
    mut copy: C,
    findings: &Findings,
    reach: Reach,
) -> io::Result<Option<String>> {
    let plan = &findings.plan;
    let (Some(edits), Some(stretches)) = (&plan.edits, &plan.stretches) else {
        copy.rewind()?;
        return verify_whole(copy, &plan.options);
    };
    let mut edits = edits.iter().peekable();
    let mut growth = 0;
    let mut place_in_copy = |at: u64| {
        while let Some(edit) = edits.next_if(|edit| edit.offset < at) {
            growth += edit.growth();
        }
        at.wrapping_add_signed(growth)
    };
    for Stretch { from, to } in &stretches.stretches {
        let at = place_in_copy(from.at);
        let to = to.as_ref().map(|to| (to, place_in_copy(to.at)));
        copy.seek(SeekFrom::Start(at - from.unchecked))?;
        let wrong = verify_stretch(&mut copy, &plan.options, reach, (from, at), to)?;
        if wrong.is_some() {
            return Ok(wrong);
        }
    }
    Ok(None)
}

/// The same, from a scan of all of the copy, which may be compressed.
pub fn verify_whole<C: Read + Send>(copy: C, options: &Options) -> io::Result<Option<String>> {
    let options = Options {
        listed: 1,
        ..options.clone()
    };
    let findings = scan(copy, &options, &mut ())?;
    let first = findings.flaws.listed.first().map(described);
    Ok(findings.reason.or(first))
}

fn verify_stretch<C: Read>(
    copy: C,
    options: &Options,
    reach: Reach,
    (from, at): (&Mark, u64),
    to: Option<(&Mark, u64)>,
) -> io::Result<Option<String>> {
    let mut machine = Machine::resumed(copy, options, reach, (), Strict::default(), from, at)?;
    machine.stop_at = to.map_or(u64::MAX, |(_, at)| at);
    while machine.at < machine.stop_at {
        let step = machine.step()?;
        if let Some(wrong) = machine.sink.0.take() {
            return Ok(Some(wrong));
        }
        match step {
            Step::More => {}
            Step::Refused(reason) => return Ok(Some(reason)),
            Step::End(_) if to.is_some() => return Ok(Some("it ends too early".to_owned())),
            Step::End(_) if options.check == Check::Utf8 => return Ok(None),
            Step::End(ending) => {
                return Ok(match machine.finish(ending) {
                    Finished::Complete => None,
                    Finished::Closed(closing) => Some(format!("it is not complete at byte {}", closing.end)),
                    Finished::Refused(_, _, reason) => Some(reason),
                });
            }
        }
    }
    let stands = machine.standing();
    Ok(match to {
        Some((to, at)) if stands != to.standing => Some(format!(
            "after its edits it does not go on as the original does, at byte {at}"
        )),
        _ => None,
    })
}

fn described(flaw: &Flaw) -> String {
    format!("{} at byte {}", flaw.kind.name(), flaw.offset)
}

/// The first flaw; a mended copy has none.
#[derive(Default)]
struct Strict(Option<String>);

impl Sink for Strict {
    fn wants_paths(&self) -> bool {
        false
    }

    fn edit(&mut self, edit: Edit, _: Option<String>) -> io::Result<()> {
        self.flaw(Flaw::from(&edit));
        Ok(())
    }

    fn flaw(&mut self, flaw: Flaw) {
        self.0.get_or_insert_with(|| described(&flaw));
    }
}
