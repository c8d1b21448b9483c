//! Bytes that may be a skeleton give a file or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::stored::skeleton_bytes(data));
