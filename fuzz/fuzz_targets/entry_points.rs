//! Wrong entry points are refused or give some pixels; a file's own give the right ones.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::stored::entry_points(data));
