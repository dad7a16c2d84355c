//! tracemend makes the traces of a run survive the way from capture to report.

pub mod bytes;
