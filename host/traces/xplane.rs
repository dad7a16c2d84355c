//! JAX's profiles: XSpace protobufs, which their programs name `HOST.xplane.pb`.
//!
//! An XSpace is a sequence of length-delimited fields: planes (1), errors (2), warnings (3), hostnames (4). A plane begins with its
//! id (1), if that is not 0, and its name (2) (tsl/profiler/protobuf/xplane.proto).

use std::io::{self, Read, Seek, SeekFrom};

use super::read::varint;

/// The ending by which TraceLens knows such a file (facts/tracelens.md section 3).
pub const XPLANE_ENDING: &str = ".xplane.pb";

/// Names of planes begin so; nothing in a Perfetto packet does.
const PLANES: [&[u8]; 2] = [b"/host:", b"/device:"];
/// Planes of accelerators.
const ACCELERATORS: [&[u8]; 2] = [b"/device:GPU", b"/device:TPU"];
/// Enough of a plane for its name's beginning.
const HEAD: usize = 48;

/// Whether bytes begin an XSpace whose first plane has a name as profilers give them.
pub(super) fn begins_xplane(head: &[u8]) -> bool {
    let Some((0x0a, rest)) = head.split_first().map(|(tag, rest)| (*tag, rest)) else {
        return false;
    };
    let Some((_, plane)) = varint(rest) else { return false };
    plane_name(plane).is_some_and(|name| PLANES.iter().any(|known| name.starts_with(known)))
}

/// The beginning of the name of the plane that begins with `plane`.
fn plane_name(plane: &[u8]) -> Option<&[u8]> {
    let rest = match plane.split_first()? {
        (0x08, rest) => varint(rest)?.1,
        _ => plane,
    };
    let (&0x12, rest) = rest.split_first()? else {
        return None;
    };
    let (length, name) = varint(rest)?;
    Some(&name[..usize::try_from(length).unwrap_or(usize::MAX).min(name.len())])
}

/// What one pass over an XSpace tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct XPlane {
    /// Whether a plane is an accelerator's.
    pub(super) accelerators: bool,
    /// Why it cannot be read, if it cannot.
    pub(super) refused: Option<String>,
}

/// Walks the fields of the XSpace `file` from one to the next: a few reads a plane, however large it is.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn examine(mut file: impl Read + Seek) -> io::Result<XPlane> {
    let size = file.seek(SeekFrom::End(0))?;
    let (mut at, mut found) = (0u64, XPlane::default());
    if size == 0 {
        found.refused = Some("an empty file; the profiler wrote nothing".to_owned());
    }
    while at < size {
        file.seek(SeekFrom::Start(at))?;
        let mut head = Vec::with_capacity(HEAD);
        file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let field = head.first().copied().unwrap_or_default();
        let Some((length, body)) = varint(&head[1..]).filter(|_| matches!(field, 0x0a | 0x12 | 0x1a | 0x22)) else {
            found.refused = Some(format!(
                "byte {at} begins no field of an XSpace; it is no JAX profile, or damaged"
            ));
            break;
        };
        let name = plane_name(body).filter(|_| field == 0x0a);
        found.accelerators |= name.is_some_and(|name| ACCELERATORS.iter().any(|known| name.starts_with(known)));
        let begin = at + (head.len() - body.len()) as u64;
        match begin.checked_add(length) {
            Some(end) if end <= size => at = end,
            _ => {
                let there = size - begin;
                found.refused = Some(format!(
                    "cut: the field at byte {at} has {length} bytes, and only {there} are there; copy the file again"
                ));
                break;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn field(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        let mut length = body.len();
        while length >= 0x80 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend(body);
        bytes
    }

    fn plane(id: u8, name: &str, padding: usize) -> Vec<u8> {
        let mut body = if id > 0 { vec![0x08, id] } else { Vec::new() };
        body.extend(field(0x12, name.as_bytes()));
        body.extend(field(0x1a, &vec![0; padding]));
        field(0x0a, &body)
    }

    #[test]
    fn planes_tell_what_was_profiled() {
        let cpu = [plane(0, "/host:metadata", 300), plane(1, "/host:CPU", 20_000)].concat();
        let gpu = [cpu.clone(), plane(2, "/device:GPU:0", 5), field(0x22, b"node01")].concat();
        assert!(begins_xplane(&cpu[..HEAD]) && begins_xplane(&plane(7, "/device:GPU:0", 0)));
        assert!(!begins_xplane(&field(0x0a, &field(0x12, b"not a plane"))));
        assert!(!begins_xplane(b"") && !begins_xplane(b"\n"));
        let found = |bytes: &[u8]| examine(Cursor::new(bytes)).unwrap();
        assert_eq!(found(&cpu), XPlane::default());
        assert!(found(&gpu).accelerators && found(&gpu).refused.is_none());
    }

    #[test]
    fn a_cut_or_foreign_file_is_refused() {
        let whole = [plane(0, "/host:CPU", 500), plane(1, "/device:GPU:0", 500)].concat();
        for length in [0, 1, 2, 30, 511, 600, whole.len() - 1] {
            let found = examine(Cursor::new(&whole[..length])).unwrap();
            // The end of a field is where one file may end as well.
            assert_eq!(
                found.refused.is_some(),
                length != plane(0, "/host:CPU", 500).len(),
                "{length}"
            );
        }
        let found = examine(Cursor::new(b"{\"traceEvents\":[]}")).unwrap();
        assert!(found.refused.unwrap().contains("byte 0 begins no field"));
    }
}
