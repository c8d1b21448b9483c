//! A NumPy file becomes a signal with the given number of channels, or is refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::series::signal(data));
