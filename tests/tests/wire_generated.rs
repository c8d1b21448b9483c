//! The committed message types are those generated from `device.proto`.

use crate::layers::root;

/// With `UPDATE_GOLDEN=1` the committed file is rewritten.
#[test]
fn generated_rs_is_made_from_the_proto() {
    let proto = root().join("format/proto");
    let out = tempfile::tempdir().expect("a temporary folder");
    let descriptors =
        protox::compile([proto.join("device.proto")], [&proto]).expect("device.proto compiles");
    tonic_prost_build::configure()
        .out_dir(out.path())
        // Received without a copy.
        .bytes(".meetpoint.device.v1.SlotData.data")
        .compile_fds(descriptors)
        .expect("code is generated");
    let made =
        std::fs::read_to_string(out.path().join("meetpoint.device.v1.rs")).expect("is there");
    let committed = root().join("format/src/wire/generated.rs");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&committed, &made).expect("generated.rs is writable");
    }
    let there = std::fs::read_to_string(&committed).expect("generated.rs reads");
    assert!(there == made, "generated.rs is stale: run the tests with UPDATE_GOLDEN=1");
}
