//! One pass over an input: its damage, and what its head, its tail and its top level say.

use super::container::{Container, USUAL_EXPANSION};
use super::edit::{Edit, Sink};
use super::ending::{Closing, Finished};
use super::flaw::{Flaw, FlawKind, Flaws, LONGEST_SHOWN};
use super::gzip::GzipEnd;
use super::machine::{Machine, Step};
use super::observer::Observer;
use super::place::Place;
use super::text::Text;
use super::utf16::Order;
use super::window::Reach;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::io::{self, Read};

/// What an input is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// That it is well-formed UTF-8, whatever it means.
    Utf8,
    /// That it is also one JSON document (RFC 8259) that every reader of facts/tracelens.md section 3 loads.
    Json,
}

/// What must be able to use a file, besides the JSON readers of facts/tracelens.md section 3 (orjson, Python, Node), which
/// always must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Readers {
    /// TraceLens's workbook writer, which a control character in a name stops half way, even if it stands there as an escape.
    pub spreadsheet: bool,
    /// Perfetto, which refuses surrogate escapes, even in pairs (facts/traces.md A49).
    pub perfetto: bool,
}

impl Default for Readers {
    /// All but Perfetto.
    fn default() -> Self {
        Readers {
            spreadsheet: true,
            perfetto: false,
        }
    }
}

/// How to scan.
#[derive(Clone, Debug)]
pub struct Options {
    pub check: Check,
    /// How many flaws are listed one by one; all are counted.
    pub listed: usize,
    pub readers: Readers,
    /// How many edits are kept in memory for the second pass. With more, it finds them again, which is slower.
    pub remembered: usize,
    /// How many bytes a gzip stream may give for each of its own, once it has given 64 MiB.
    pub expansion: u64,
}

impl Default for Options {
    /// A full check that lists the first 100 flaws.
    fn default() -> Self {
        Options {
            check: Check::Json,
            listed: 100,
            readers: Readers::default(),
            remembered: 4096,
            expansion: USUAL_EXPANSION,
        }
    }
}

/// Whether an input can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// As it is.
    Clean,
    /// After mending.
    Damaged,
    /// Nothing sane can be made of it.
    Refused,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Damaged => "damaged",
            Verdict::Refused => "refused",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a document is at its top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    Object,
    Array,
    Scalar,
}

/// A member of the root object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name, escapes decoded.
    pub key: String,
    /// The value: JSON text, mended.
    pub text: String,
}

/// The longest value, in bytes, that becomes a [`Member`].
pub const LONGEST_MEMBER: usize = 64 << 10;
/// How many bytes all [`Findings::members`] have together at most; later ones are left out.
pub const ALL_MEMBERS: usize = 1 << 20;
/// How many [`Findings::keys`] there are at most.
pub const MOST_KEYS: usize = 1024;
/// How long, in bytes, [`Findings::head`] and [`Findings::tail`] are at most.
pub const LONGEST_END: usize = 64 << 10;

/// What one pass found.
#[derive(Clone, Debug)]
pub struct Findings {
    pub container: Container,
    /// "utf-8", "utf-16le" or "utf-16be".
    pub encoding: &'static str,
    /// Bytes of the text: decompressed and, if it is UTF-16, transcoded. Of a refused input, those read until it was refused.
    pub size: u64,
    pub verdict: Verdict,
    /// Why the input is refused: one line that names the place and the cure.
    pub reason: Option<String>,
    pub flaws: Flaws,
    /// What no reader refuses, but a user should know: a line each.
    pub warnings: Vec<String>,
    /// The members of the root object whose values have at most [`LONGEST_MEMBER`] bytes, in file order, wherever they stand
    /// and however often. Of a refused input, those before the place of refusal.
    pub members: Vec<Member>,
    /// The names of all members of the root object, escapes decoded, each once, in file order.
    pub keys: Vec<String>,
    /// None if nothing JSON was found, or nothing JSON was looked for.
    pub root: Option<Root>,
    /// The first bytes of the text, as they stand in the input.
    pub head: Vec<u8>,
    /// The last bytes of the text, as they stand in the input.
    pub tail: Vec<u8>,
    pub(super) plan: Plan,
}

impl Default for Findings {
    /// Of an input that nobody scanned: clean, as far as anyone knows.
    fn default() -> Self {
        Findings {
            container: Container::Plain,
            encoding: "binary",
            size: 0,
            verdict: Verdict::Clean,
            reason: None,
            flaws: Flaws::default(),
            warnings: Vec::new(),
            members: Vec::new(),
            keys: Vec::new(),
            root: None,
            head: Vec::new(),
            tail: Vec::new(),
            plan: Plan {
                options: Options::default(),
                edits: None,
                closing: None,
                order: None,
                odd_byte: None,
            },
        }
    }
}

impl Findings {
    /// Of an input that cannot be read, and why.
    pub fn unread(reason: String) -> Self {
        Findings {
            verdict: Verdict::Refused,
            reason: Some(reason),
            ..Findings::default()
        }
    }
}

/// What a second pass needs to know of the first.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub options: Options,
    /// All edits but the closing one, if they are few.
    pub edits: Option<Vec<Edit>>,
    pub closing: Option<Closing>,
    pub odd_byte: Option<u8>,
}

/// How many of the last flaws can be taken back if a cut drops what they stand in.
const MOST_RECENT: usize = 4096;
/// The most bytes of an edit that is remembered.
const LONGEST_REMEMBERED: usize = 1024;

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
    let (container, order, text) = Text::open(input, options)?;
    let mut found = Found::new(options);
    let mut machine = Machine::new(text, options, reach, observer, &mut found);
    let mut reason = None;
    let mut closing = None;
    let mut warnings = Vec::new();
    match container {
        Container::Zstd | Container::Xz => {
            machine.slide(0)?;
            let name = container.as_str();
            reason = Some(format!("{name}-compressed: decompress it first (`{name} -d FILE`)"));
        }
        Container::Plain | Container::Gzip => match machine.run(order)? {
            Step::Refused(why) => reason = Some(why),
            Step::End(ending) if options.check == Check::Json => match machine.finish(ending) {
                Finished::Complete => {}
                Finished::Closed(plan) => closing = Some(plan),
                Finished::Refused(kind, place, why) => {
                    machine.add_flaw(kind, place, 0);
                    reason = Some(why);
                }
            },
            Step::End(_) | Step::More => {}
        },
    }
    let size = machine.window.end();
    if let Some(closing) = &closing {
        machine.top.cut(closing.place.offset);
        machine
            .sink
            .close(closing, machine.window.slice(closing.place.offset, closing.end));
        if closing.kind == FlawKind::Cut {
            let inside = closing
                .path
                .as_deref()
                .map(|path| format!(", in {path}"))
                .unwrap_or_default();
            warnings.push(format!(
                "cut at byte {}{inside}: {} bytes after the last whole event are dropped, and all counts are a floor",
                closing.end,
                closing.end - closing.place.offset,
            ));
        }
    }
    if container == Container::Gzip {
        if reason.is_some() {
            // Garbage in the text may come from a damaged stream, which its checksum tells.
            machine.drain()?;
        }
        let end = machine.window.input().gzip_end();
        if let Some((kind, bytes, what)) = end.and_then(GzipEnd::damage) {
            let Place { offset, line, column } = machine.place(size);
            machine.sink.flaw(Flaw {
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
                FlawKind::GzipCorrupt | FlawKind::GzipExpansion => reason = Some(what),
                _ => warnings.push(what),
            }
        }
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
    let odd_byte = machine.window.input().odd_byte();
    let Machine { head, top, .. } = machine;
    let (members, keys) = top.take();
    let verdict = match (&reason, found.flaws.count) {
        (Some(_), _) => Verdict::Refused,
        (None, 0) => Verdict::Clean,
        (None, _) => Verdict::Damaged,
    };
    let encoding = order.map_or("utf-8", Order::name);
    let Found { flaws, edits, .. } = found;
    let plan = Plan {
        options: options.clone(),
        edits,
        closing,
        odd_byte,
    };
    Ok(Findings {
        container,
        encoding,
        size,
        verdict,
        reason,
        flaws,
        warnings,
        members,
        keys,
        root,
        head,
        tail,
        plan,
    })
}

struct Found {
    flaws: Flaws,
    listed: usize,
    edits: Option<Vec<Edit>>,
    remembered: usize,
    /// The last flaws: a cut may drop what they stand in.
    recent: VecDeque<(u64, FlawKind)>,
}

impl Found {
    fn new(options: &Options) -> Self {
        Found {
            flaws: Flaws::default(),
            listed: options.listed,
            remembered: options.remembered,
            edits: Some(Vec::new()),
            recent: VecDeque::new(),
        }
    }

    fn add(&mut self, flaw: Flaw) {
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((flaw.offset, flaw.kind));
        self.flaws.add(self.listed, flaw);
    }

    /// Forgets the flaws of what is dropped, and adds the cut itself. Of more than [`MOST_RECENT`] flaws in one event the
    /// first are counted all the same.
    fn close(&mut self, closing: &Closing, dropped: &[u8]) {
        let from = closing.place.offset;
        // A value that was missing before the comma at which the cut starts stays.
        let drops = |offset, kind| offset > from || offset == from && kind != FlawKind::MissingValue;
        while let Some((_, kind)) = self.recent.pop_back_if(|(offset, kind)| drops(*offset, *kind)) {
            self.flaws.remove(kind);
        }
        self.flaws.listed.retain(|flaw| !drops(flaw.offset, flaw.kind));
        if let Some(edits) = &mut self.edits {
            edits.retain(|edit| !drops(edit.offset, edit.kind));
        }
        self.add(Flaw {
            kind: closing.kind,
            offset: from,
            length: closing.end - from,
            bytes: dropped[..dropped.len().min(LONGEST_SHOWN)].to_vec(),
            line: closing.place.line,
            column: closing.place.column,
            path: closing.path.clone(),
            guess: false,
        });
    }
}

impl Sink for &mut Found {
    fn wants_paths(&self) -> bool {
        self.flaws.listed.len() < self.listed
    }

    fn edit(&mut self, edit: Edit, path: Option<String>) -> io::Result<()> {
        self.add(Flaw {
            path,
            ..Flaw::from(&edit)
        });
        if let Some(edits) = &mut self.edits {
            if edits.len() < self.remembered && edit.old.len() <= LONGEST_REMEMBERED {
                edits.push(edit);
            } else {
                self.edits = None;
            }
        }
        Ok(())
    }

    fn flaw(&mut self, flaw: Flaw) {
        self.add(flaw);
    }
}
