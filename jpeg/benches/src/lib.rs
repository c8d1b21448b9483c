//! Shared parts of benches: options, rows of results, the machine, thread time, pictures; and, as a
//! peer and an oracle for the kernels, libjpeg-turbo.
//!
//! It depends only on formats and kernels, so that a kernel is measured and checked without other
//! crates.

mod clock;
mod files;
mod generated;
#[cfg(feature = "libjpeg-turbo")]
pub mod libjpeg;
mod machine;
mod options;
mod rows;

pub use clock::thread_ns;
pub use files::jpeg_files;
pub use generated::{encoded_picture, generated_picture};
pub use machine::{Machine, instruction_set};
pub use options::Options;
pub use rows::{Report, Row, Target, median};

/// The commands that enable what a build without the feature `libjpeg-turbo` skips.
pub const LIBJPEG_HINT: &str = "apt install gcc pkg-config libjpeg62-turbo-dev, then \
     cargo bench -p meetpoint-jpeg-benches --features libjpeg-turbo --bench jpeg";
