//! An index of keys gives candidates or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::containers::key_index(data));
