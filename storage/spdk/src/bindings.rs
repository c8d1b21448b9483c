//! SPDK's functions and structures, generated from its headers by `build.rs`.
#![expect(
    clippy::allow_attributes,
    dead_code,
    non_camel_case_types,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_code,
    reason = "generated code"
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
