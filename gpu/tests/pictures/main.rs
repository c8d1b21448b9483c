//! Recipes executed by the GPU kernels give the same bytes as on the CPU.
#![cfg(feature = "shim")]

mod colour;
mod compare;
mod every_operation;
mod finish;
#[expect(dead_code, reason = "the tests of that crate use all of it")]
#[path = "../../../kernels/tests/every_operation/generate.rs"]
mod generate;
mod geometry;
#[expect(unreachable_pub, reason = "the other crate exports part of it")]
#[path = "../../../prepare/src/gpu/program.rs"]
mod program;
mod warps;
