//! The text of a page has no empty lines, and no space at the ends of a line or beside another.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::series::html(data));
