//! An MDS dataset gives samples or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::containers::mds(data));
