//! Reading inside a run's traces: the first look that tells what may be a trace, and the slices that plugins ask for.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;

use cap_std::fs::{Dir, File};

use super::discover::Run;
use super::xplane::begins_xplane;
use crate::bytes::open;

/// What a file may be, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glance {
    /// Text that begins as JSON does, perhaps compressed.
    Json,
    /// Perfetto packets.
    Pftrace,
    /// Planes of a JAX profile.
    XPlane,
    /// Neither.
    NoTrace,
}

/// Looks at the first bytes of a file.
pub(super) fn glance(dir: &Dir, path: &Path) -> io::Result<Glance> {
    let mut head = Vec::new();
    let (_, opened) = open(dir.open(path)?)?;
    // A damaged gzip stream may still show its first bytes.
    let _ = opened.take(4096).read_to_end(&mut head);
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    Ok(match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => Glance::Json,
        _ if begins_xplane(&head) => Glance::XPlane,
        // Any protobuf that begins with a message looks like one; those of other programs are called .pb.
        _ if is_pftrace(&head) && path.extension().is_none_or(|ending| ending != "pb") => Glance::Pftrace,
        _ => Glance::NoTrace,
    })
}

/// A Perfetto trace is a sequence of field 1 (`packet`), each length-delimited and beginning with a field of TracePacket
/// (perfetto/trace/trace.proto). Two packets in a row, or one that fills the file, are no accident.
fn is_pftrace(head: &[u8]) -> bool {
    let mut rest = head;
    for packets in 0..3 {
        let [0x0a, after @ ..] = rest else {
            return packets > 0 && rest.is_empty();
        };
        let Some((length, body)) = varint(after) else {
            return packets > 0;
        };
        let plausible = body.first().is_none_or(|tag| tag & 7 <= 5 && tag >> 3 != 0);
        if length == 0 || !plausible {
            return false;
        }
        match usize::try_from(length).ok().and_then(|length| body.get(length..)) {
            Some(next) => rest = next,
            None => return packets > 0 || length < 1 << 30,
        }
    }
    true
}

pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

impl Run {
    /// Opens trace `index` as stored.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self, index: usize) -> io::Result<File> {
        self.dir.open(&self.traces[index].path)
    }

    fn decompressed(&self, index: usize) -> io::Result<impl Read> {
        Ok(open(self.open(index)?)?.1)
    }

    /// The first bytes of trace `index`, decompressed, at most `max`.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn head(&self, index: usize, max: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.decompressed(index)?.take(max as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    /// The last bytes of trace `index`, decompressed, at most `max`.
    ///
    /// # Errors
    /// When the trace cannot be read to its end.
    pub fn tail(&self, index: usize, max: usize) -> io::Result<Vec<u8>> {
        let mut tail = VecDeque::new();
        for_each_chunk(self.decompressed(index)?, |chunk| {
            tail.extend(&chunk[chunk.len().saturating_sub(max)..]);
            tail.drain(..tail.len().saturating_sub(max));
            true
        })?;
        Ok(tail.into())
    }

    /// The first `limit` places of `needle` in trace `index`, decompressed: its offset, and the bytes from `around` before to
    /// `around` behind it.
    ///
    /// # Errors
    /// When the trace cannot be read that far.
    pub fn find(&self, index: usize, needle: &[u8], limit: usize, around: usize) -> io::Result<Vec<(u64, Vec<u8>)>> {
        find(self.decompressed(index)?, needle, limit, around)
    }
}

const CHUNK: usize = 128 << 10;

fn for_each_chunk(mut input: impl Read, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) if take(&buffer[..length]) => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn find(input: impl Read, needle: &[u8], limit: usize, around: usize) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let finder = memchr::memmem::Finder::new(needle);
    let mut hits: Vec<(u64, Vec<u8>)> = Vec::new();
    // `window` is the stretch of the input that begins at `base`; hits are looked for from `from` on and taken only once all
    // that belongs around them has arrived.
    let (mut window, mut base, mut from) = (Vec::new(), 0u64, 0usize);
    let reach = needle.len() + around;
    let mut sweep = |window: &mut Vec<u8>, last: bool, hits: &mut Vec<(u64, Vec<u8>)>| {
        while hits.len() < limit {
            let Some(at) = finder.find(&window[from..]).map(|at| from + at) else {
                from = from.max((window.len() + 1).saturating_sub(needle.len()));
                break;
            };
            if !last && window.len() < at + reach {
                from = at;
                break;
            }
            let end = window.len().min(at + reach);
            hits.push((base + at as u64, window[at.saturating_sub(around)..end].to_vec()));
            from = at + needle.len();
        }
        let keep = from.saturating_sub(around);
        window.drain(..keep);
        base += keep as u64;
        from -= keep;
        hits.len() < limit
    };
    for_each_chunk(input, |chunk| {
        window.extend_from_slice(chunk);
        sweep(&mut window, false, &mut hits)
    })?;
    sweep(&mut window, true, &mut hits);
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out its data in pieces of the given sizes.
    struct Pieces<'a>(&'a [u8], Vec<usize>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.1.pop().unwrap_or(1).min(self.0.len()).min(buffer.len());
            buffer[..size].copy_from_slice(&self.0[..size]);
            self.0 = &self.0[size..];
            Ok(size)
        }
    }

    proptest! {
        #[test]
        fn hits_do_not_depend_on_how_the_bytes_arrive(
            data in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], 0..300),
            sizes in proptest::collection::vec(1usize..40, 0..100),
            limit in 1usize..20,
            around in 0usize..9,
        ) {
            let needle = b"aba";
            let whole: Vec<(u64, Vec<u8>)> = memchr::memmem::find_iter(&data, needle)
                .take(limit)
                .map(|at| (at as u64, data[at.saturating_sub(around)..data.len().min(at + 3 + around)].to_vec()))
                .collect();
            prop_assert_eq!(find(Pieces(&data, sizes), needle, limit, around).unwrap(), whole);
        }
    }

    #[test]
    fn perfetto_packets_are_told_from_other_bytes() {
        assert!(is_pftrace(&[0x0a, 2, 0x08, 1, 0x0a, 2, 0x08, 2]));
        assert!(is_pftrace(&[0x0a, 0x90, 0x4e, 0x08, 1]));
        assert!(!is_pftrace(b"\n\nplain text that begins with two new lines"));
        assert!(!is_pftrace(b"\n"));
        assert!(!is_pftrace(b""));
    }
}
