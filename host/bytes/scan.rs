//! One pass over an input: its damage, and what its head, its tail and its top level say.

use super::ahead::read_ahead;
use super::container::Container;
use super::edit::Sink;
use super::ending::{Closing, Finished};
use super::findings::{Findings, LONGEST_END, Plan, Root, Verdict};
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
use std::panic::resume_unwind;
use std::thread;

/// Reads `input` to its end, in one pass and constant memory, and says what is wrong with it. With [`Check::Json`] the
/// `observer` hears what the document holds. However `input` cuts its bytes into reads, the findings are the same.
///
/// Errors are those of reading `input`; damage of any kind is a finding.
pub fn scan<R: Read + Send, O: Observer>(input: R, options: &Options, observer: &mut O) -> io::Result<Findings> {
    scan_within(input, options, observer, Reach::default())
}

pub(super) fn scan_within<R: Read + Send, O: Observer>(
    input: R,
    options: &Options,
    observer: &mut O,
    reach: Reach,
) -> io::Result<Findings> {
    scan_into(input, options, observer, reach, &mut Found::new(options))
}

pub(super) fn scan_into<R: Read + Send, O: Observer>(
    input: R,
    options: &Options,
    observer: &mut O,
    reach: Reach,
    found: &mut Found,
) -> io::Result<Findings> {
    let (container, order, mut text) = Text::open(input, options)?;
    let (mut pass, text) = match container {
        Container::Zstd | Container::Xz => {
            let mut pass = check_utf8(text.by_ref().take(LONGEST_END as u64), &mut Found::new(options), reach)?;
            let name = container.as_str();
            pass.findings.reason = Some(format!("{name}-compressed: decompress it first (`{name} -d FILE`)"));
            (pass, text)
        }
        Container::Plain => (check(&mut text, order, options, observer, found, reach)?, text),
        Container::Gzip => thread::scope(|scope| {
            let (mut ahead, reader) = read_ahead(scope, text);
            let pass = check(&mut ahead, order, options, observer, found, reach)?;
            if pass.findings.reason.is_some() {
                // Garbage in the text may come from a damaged stream, which its checksum tells.
                io::copy(&mut ahead, &mut io::sink())?;
            }
            drop(ahead);
            let text = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            io::Result::Ok((pass, text))
        })?,
    };
    if let Some((kind, bytes, what)) = text.gzip_end().and_then(GzipEnd::damage) {
        pass.add_damage(found, kind, bytes, what);
    }
    let Pass {
        end,
        closing,
        mut findings,
    } = pass;
    findings.container = container;
    findings.encoding = order.map_or("utf-8", Order::name);
    findings.size = end.offset;
    findings.flaws = std::mem::take(&mut found.flaws);
    findings.verdict = match (&findings.reason, findings.flaws.count) {
        (Some(_), _) => Verdict::Refused,
        (None, 0) => Verdict::Clean,
        (None, _) => Verdict::Damaged,
    };
    findings.plan = Plan {
        options: options.clone(),
        edits: found.edits.take(),
        stretches: std::mem::take(&mut found.stretches).finish(),
        closing,
        odd_byte: text.odd_byte(),
    };
    Ok(findings)
}

fn check<R: Read, O: Observer>(
    text: R,
    order: Option<Order>,
    options: &Options,
    observer: &mut O,
    found: &mut Found,
    reach: Reach,
) -> io::Result<Pass> {
    match options.check {
        Check::Utf8 => check_utf8(text, found, reach),
        Check::Json => check_json(text, order, options, observer, found, reach),
    }
}

/// What a pass over a text learned.
pub(super) struct Pass {
    /// Where it ended.
    pub end: Place,
    pub closing: Option<Closing>,
    /// All but the flaws, and what follows from them.
    pub findings: Findings,
}

impl Pass {
    /// Adds the damage of the container, which is where the text ended.
    fn add_damage(&mut self, found: &mut Found, kind: FlawKind, bytes: Vec<u8>, what: String) {
        if matches!(kind, FlawKind::GzipCorrupt | FlawKind::GzipExpansion) {
            self.findings.reason = Some(what);
            // That the document is not complete says nothing: its end was not read.
            if let Some(closing) = self.closing.take() {
                found.forget(closing.kind, closing.place.offset);
            }
        } else {
            self.findings.warnings.push(what);
        }
        let Place { offset, line, column } = self.end;
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
    }
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
        closing,
        findings: Findings {
            reason,
            warnings,
            members,
            keys,
            root,
            head,
            tail,
            ..Findings::default()
        },
    })
}
