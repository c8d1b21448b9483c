//! Recipes executed by the kernels for GPUs give the bytes that the CPU's give.
#![cfg(feature = "shim")]

mod colour;
mod compare;
mod finish;
mod geometry;
#[path = "../../../prepare/src/gpu/program.rs"]
mod program;
mod warps;
