//! Who listens while a document is scanned.

/// An object or an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    Object,
    Array,
}

/// A value that is no container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// The bytes between the quotes as they stand in the file: escapes not decoded, damage not mended.
    String(&'a [u8]),
    /// A string of more than [`LONGEST_REPORTED`] bytes.
    LongString,
    /// The digits as they stand in the file.
    Number(&'a [u8]),
    Bool(bool),
    Null,
}

/// Strings and keys of more bytes than this are not handed to an [`Observer`].
pub const LONGEST_REPORTED: usize = 4096;

/// Learns what a document holds while the one pass over it runs.
///
/// Depth 1 is the root container. `key` is the member's name (raw bytes, escapes not decoded) if the parent is an object;
/// it is `None` for elements of an array, for the root, and for names of more than [`LONGEST_REPORTED`] bytes. Nothing is
/// said about containers nested in one whose `begin` answered `false`; that is what keeps a pass fast, so answer `false`
/// wherever the rest cannot matter any more. After damage that is dropped (the last event of a cut file) what was reported
/// of it stays reported.
///
/// ```
/// use tracemend::bytes::{self, Structure, Observer, Options, Scalar};
///
/// /// Whether a Kineto trace holds a GPU kernel: `{"traceEvents":[{"cat":"kernel",...}]}`.
/// #[derive(Default)]
/// struct Kernels(bool);
///
/// impl Observer for Kernels {
///     const MAX_DEPTH: usize = 3;
///
///     fn begin(&mut self, _: Structure, depth: usize, key: Option<&[u8]>) -> bool {
///         match depth {
///             1 => true,
///             2 => key == Some(b"traceEvents"),
///             _ => !self.0,
///         }
///     }
///
///     fn scalar(&mut self, value: Scalar<'_>, depth: usize, key: Option<&[u8]>) {
///         self.0 |= depth == 3 && key == Some(b"cat") && value == Scalar::String(b"kernel");
///     }
/// }
///
/// let trace = br#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm"}]}"#;
/// let mut kernels = Kernels::default();
/// bytes::scan(&trace[..], &Options::default(), &mut kernels)?;
/// assert!(kernels.0);
/// # std::io::Result::Ok(())
/// ```
pub trait Observer {
    /// Containers nested deeper than this are passed over without a word.
    const MAX_DEPTH: usize;

    /// A container at `depth` begins. Answer whether to hear what is in it.
    fn begin(&mut self, structure: Structure, depth: usize, key: Option<&[u8]>) -> bool {
        let _ = (structure, depth, key);
        true
    }

    /// The container at `depth`, one whose `begin` answered `true`, ends.
    fn end(&mut self, depth: usize) {
        let _ = depth;
    }

    /// A value in the container at `depth` (0: the document is this one value).
    fn scalar(&mut self, value: Scalar<'_>, depth: usize, key: Option<&[u8]>) {
        let _ = (value, depth, key);
    }
}

/// Listens to nothing.
impl Observer for () {
    const MAX_DEPTH: usize = 0;

    fn begin(&mut self, _: Structure, _: usize, _: Option<&[u8]>) -> bool {
        false
    }
}

impl<O: Observer> Observer for &mut O {
    const MAX_DEPTH: usize = O::MAX_DEPTH;

    fn begin(&mut self, structure: Structure, depth: usize, key: Option<&[u8]>) -> bool {
        (**self).begin(structure, depth, key)
    }

    fn end(&mut self, depth: usize) {
        (**self).end(depth);
    }

    fn scalar(&mut self, value: Scalar<'_>, depth: usize, key: Option<&[u8]>) {
        (**self).scalar(value, depth, key);
    }
}
