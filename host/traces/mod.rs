//! What lies in a run's folder: the traces, their kinds by content, and the facts that one pass over each gathers.

mod discover;
mod kind;
mod read;
mod suffix;
mod unsupported;
mod xplane;

pub use discover::{OUTPUT_MARK, Run, Skipped, TraceFile, discover};
pub use kind::{Kind, KindObserver};
pub use suffix::{check_suffix, only_the_suffix_misleads};
pub use unsupported::Unsupported;
pub use xplane::XPLANE_ENDING;
