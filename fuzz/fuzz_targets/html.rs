//! The text of a page has no empty lines, no spaces at the ends of a line, and no double spaces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::series::html(data));
