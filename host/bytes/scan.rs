//! One pass over an input: its damage, and what its head, its tail and its top level say.

use super::container::Container;
use super::edit::Sink;
use super::ending::{Closing, Finished};
use super::findings::{Findings, LONGEST_END, Member, Plan, Root, Verdict};
use super::flaw::{Flaw, FlawKind};
use super::found::Found;
use super::gzip::GzipEnd;
use super::machine::{Machine, Step};
use super::observer::Observer;
use super::options::{Check, Options};
use super::place::Place;
use super::text::Text;
use super::utf8_pass::check_utf8;
use super::utf16::Order;
use super::window::Reach;
use std::io::{self, Read};

/// Reads `input` to its end, in one pass and constant memory, and says what is wrong with it. With [`Check::Json`] the
/// `observer` hears what the document holds. However `input` cuts its bytes into reads, the findings are the same.
///
/// Errors are those of reading `input`; damage of any kind is a finding.
pub fn scan<R: Read, O: Observer>(input: R, options: &Options, observer: &mut O) -> io::Result<Findings> {
    scan_within(input, options, observer, Reach::default())
}

pub(super) fn scan_within<R: Read, O: Observer>(
    input: R,
    options: &Options,
    observer: &mut O,
    reach: Reach,
) -> io::Result<Findings> {
    scan_into(input, options, observer, reach, &mut Found::new(options))
}

pub(super) fn scan_into<R: Read, O: Observer>(
    input: R,
    options: &Options,
    observer: &mut O,
    reach: Reach,
    found: &mut Found,
) -> io::Result<Findings> {
    let (container, order, mut text) = Text::open(input, options)?;
    let mut pass = match (container, options.check) {
        (Container::Zstd | Container::Xz, _) => Pass {
            reason: Some(format!(
                "{0}-compressed: decompress it first (`{0} -d FILE`)",
                container.as_str()
            )),
            ..check_utf8(text.by_ref().take(LONGEST_END as u64), &mut Found::new(options), reach)?
        },
        (_, Check::Utf8) => check_utf8(&mut text, found, reach)?,
        (_, Check::Json) => check_json(&mut text, order, options, observer, found, reach)?,
    };
    if container == Container::Gzip {
        if pass.reason.is_some() {
            // Garbage in the text may come from a damaged stream, which its checksum tells.
            io::copy(&mut text, &mut io::sink())?;
        }
        if let Some((kind, bytes, what)) = text.gzip_end().and_then(GzipEnd::damage) {
            let Place { offset, line, column } = pass.end;
            found.add(Flaw {
                kind,
                offset,
                length: 0,
                bytes,
                line,
                column,
                path: None,
                guess: false,
            });
            match kind {
                FlawKind::GzipCorrupt | FlawKind::GzipExpansion => pass.reason = Some(what),
                _ => pass.warnings.push(what),
            }
        }
    }
    let verdict = match (&pass.reason, found.flaws.count) {
        (Some(_), _) => Verdict::Refused,
        (None, 0) => Verdict::Clean,
        (None, _) => Verdict::Damaged,
    };
    let odd_byte = text.odd_byte();
    let Pass {
        end,
        reason,
        closing,
        warnings,
        members,
        keys,
        root,
        head,
        tail,
    } = pass;
    Ok(Findings {
        container,
        encoding: order.map_or("utf-8", Order::name),
        size: end.offset,
        verdict,
        reason,
        flaws: std::mem::take(&mut found.flaws),
        warnings,
        members,
        keys,
        root,
        head,
        tail,
        plan: Plan {
            options: options.clone(),
            edits: found.edits.take(),
            stretches: std::mem::take(&mut found.stretches).finish(),
            closing,
            odd_byte,
        },
    })
}

/// What a pass over a text learned besides flaws.
pub(super) struct Pass {
    /// Where it ended.
    pub end: Place,
    pub reason: Option<String>,
    pub closing: Option<Closing>,
    pub warnings: Vec<String>,
    pub members: Vec<Member>,
    pub keys: Vec<String>,
    pub root: Option<Root>,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

fn check_json<R: Read, O: Observer>(
    text: R,
    order: Option<Order>,
    options: &Options,
    observer: &mut O,
    found: &mut Found,
    reach: Reach,
) -> io::Result<Pass> {
    let mut machine = Machine::new(text, options, reach, observer, found);
    let mut reason = None;
    let mut closing = None;
    match machine.run(order)? {
        Step::Refused(why) => reason = Some(why),
        Step::End(ending) => match machine.finish(ending) {
            Finished::Complete => {}
            Finished::Closed(plan) => closing = Some(plan),
            Finished::Refused(kind, place, why) => {
                machine.add_flaw(kind, place, 0);
                reason = Some(why);
            }
        },
        Step::More => {}
    }
    let size = machine.window.end();
    let end = machine.place(size);
    let mut warnings = Vec::new();
    let kept = closing.as_ref().map_or(size, |closing| closing.place.offset);
    machine.sink.settled(machine.window.slice(0, kept), kept)?;
    if let Some(closing) = &closing {
        machine.top.cut(closing.place.offset);
        let dropped = machine.window.slice(closing.place.offset, closing.end);
        machine.sink.close(closing, dropped);
        warnings.extend(closing.warning());
    }
    warnings.extend(machine.warnings());
    let root = machine.grammar.root.map(|(_, byte)| match byte {
        b'{' => Root::Object,
        b'[' => Root::Array,
        _ => Root::Scalar,
    });
    let tail = machine
        .window
        .slice(size.saturating_sub(LONGEST_END as u64), size)
        .to_vec();
    let Machine { head, top, .. } = machine;
    let (members, keys) = top.take();
    Ok(Pass {
        end,
        reason,
        closing,
        warnings,
        members,
        keys,
        root,
        head,
        tail,
    })
}
