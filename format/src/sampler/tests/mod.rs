//! Tests of samplers: random access, draws, expressions, and what is refused.

mod access;
mod columns;
mod draws;
mod expressions;
mod refusals;
