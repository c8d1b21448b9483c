//! Decodes JPEGs on a GPU, bit-identical to `meetpoint_jpeg`: a batch of any sizes, with a fixed
//! number of copies and launches.
//!
//! ```text
//! plans and files --add--> staging area --one copy--> device
//!   jpeg_decode_segments   Huffman codes to coefficients, a thread for each segment
//!   jpeg_decode_by_warps   the same with long segments, a warp for each
//!   jpeg_decode_by_blocks  the same with the longest ones, a block of threads for each
//!   jpeg_decode_forms      coefficient forms to coefficients, a warp for each row of MCUs
//!   jpeg_transform         coefficients to samples
//!   jpeg_make_pixels       samples to three planes of pixels
//! ```
//!
//! Each kind of error in the data of a picture is a bit of its [`PictureStatus`]. If any is set,
//! the CPU decodes the picture again and determines the error.
//!
//! In reading order: [`JpegBatch`], [`JpegLimits`], `words` (descriptions of a batch), `layout`
//! (their structures), `form` (those of coefficient forms), `tables` (Huffman tables), `area` (the
//! staging area), `stuffing` (data without stuffed bytes).

mod area;
mod batch;
mod form;
mod layout;
mod limits;
mod stuffing;
mod tables;
mod words;

pub use batch::JpegBatch;
pub use limits::{BatchBytes, JpegError, JpegLimits, PictureStatus};
