//! A mended copy, written while its original is scanned: each byte is read once, and the scan does not wait for the writing.

use super::edit::Edit;
use super::findings::{Findings, Verdict};
use super::found::Found;
use super::observer::Observer;
use super::options::Options;
use super::scan::scan_into;
use super::window::Reach;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// [`scan`](super::scan), and meanwhile writes to the empty file `out` what [`mend`](super::mend) would. The copy is there if
/// the second value is true. If not, because the input is refused, or its end drops what is too far back, `out` is empty.
///
/// Errors: those of `input` and `out`.
pub fn scan_and_mend<R: Read + Send, O: Observer>(
    input: R,
    out: &File,
    options: &Options,
    observer: &mut O,
) -> io::Result<(Findings, bool)> {
    scan_and_mend_within(input, out, options, observer, Reach::default())
}

pub(super) fn scan_and_mend_within<R: Read + Send, O: Observer>(
    input: R,
    mut out: &File,
    options: &Options,
    observer: &mut O,
    reach: Reach,
) -> io::Result<(Findings, bool)> {
    let (full, blocks) = sync_channel(BLOCKS);
    let (empty, emptied) = channel();
    let mut found = Found::new(options);
    found.copying = Some(Copying::new(full, emptied));
    let (scanned, written) = thread::scope(|scope| {
        let writer = scope.spawn(move || write_blocks(out, blocks, &empty));
        let scanned = scan_into(input, options, observer, reach, &mut found);
        let copying = found.copying.take();
        let last = copying.and_then(Copying::into_last_block);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (scanned, written.map(|()| last))
    });
    // Where the writing failed, the scan stopped because of that.
    let (last, findings) = (written?, scanned?);
    let usable = last.filter(|_| findings.verdict != Verdict::Refused);
    let Some(Last { block, end }) = usable else {
        out.set_len(0)?;
        out.rewind()?;
        return Ok((findings, false));
    };
    out.write_all(&block)?;
    if let Some(closing) = &findings.plan.closing {
        out.set_len(end)?;
        out.seek(SeekFrom::Start(end))?;
        out.write_all(&closing.new)?;
    }
    Ok((findings, true))
}

/// Bytes written at a time: the file system likes large writes that start at the boundaries of pages.
const BLOCK: usize = 1 << 20;
/// How many blocks wait to be written at most, besides the one in work at either side.
const BLOCKS: usize = 1;

/// The writing thread.
fn write_blocks(mut out: &File, blocks: Receiver<Vec<u8>>, empty: &Sender<Vec<u8>>) -> io::Result<()> {
    for mut block in blocks {
        out.write_all(&block)?;
        block.clear();
        // The scan may have come to its end.
        let _ = empty.send(block);
    }
    Ok(())
}

/// The scan's side: gathers what has been settled into blocks.
pub(super) struct Copying {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    block: Vec<u8>,
    /// Offset in the text up to which the copy has come.
    at: u64,
    /// Bytes of the copy.
    size: u64,
    /// Where the copy ends, if that is before what has been written.
    end: Option<u64>,
    /// Whether the copy has a hole, or its end is not known.
    spoilt: bool,
}

impl Copying {
    fn new(full: SyncSender<Vec<u8>>, empty: Receiver<Vec<u8>>) -> Self {
        Copying {
            full,
            empty,
            block: Vec::with_capacity(BLOCK),
            at: 0,
            size: 0,
            end: None,
            spoilt: false,
        }
    }

    /// Everything before `to` stays as it is, but for the edits told; `before` are the bytes that end there.
    pub(super) fn settled(&mut self, before: &[u8], to: u64) -> io::Result<()> {
        let length = to.saturating_sub(self.at) as usize;
        let Some(from) = before.len().checked_sub(length) else {
            self.spoilt = true;
            return Ok(());
        };
        self.at += length as u64;
        self.append(&before[from..])
    }

    /// All before the edit has been settled.
    pub(super) fn edit(&mut self, edit: &Edit) -> io::Result<()> {
        self.spoilt |= edit.offset != self.at;
        self.at = edit.offset + edit.old.len() as u64;
        self.append(&edit.new)
    }

    /// All from `at` on is replaced, and these are the edits before; none if they are not known.
    pub(super) fn close(&mut self, at: u64, edits: Option<&[Edit]>) {
        if self.at <= at {
            return;
        }
        match edits {
            Some(edits) => {
                let growth = edits.iter().map(Edit::growth).sum();
                self.end = Some(at.wrapping_add_signed(growth));
            }
            None => self.spoilt = true,
        }
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.size += bytes.len() as u64;
        while self.block.len() + bytes.len() >= BLOCK {
            let (now, later) = bytes.split_at(BLOCK - self.block.len());
            self.block.extend_from_slice(now);
            bytes = later;
            let full = std::mem::take(&mut self.block);
            if self.full.send(full).is_err() {
                return Err(io::Error::other("the copy cannot be written"));
            }
            self.block = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    fn into_last_block(self) -> Option<Last> {
        (!self.spoilt).then_some(Last {
            end: self.end.unwrap_or(self.size),
            block: self.block,
        })
    }
}

/// What is left to be written, and where the copy ends then, before what closes it.
struct Last {
    block: Vec<u8>,
    end: u64,
}
