//! Tests of samplers: random access, draws, expressions, mixtures, and errors.

mod access;
mod aspect_ratio;
mod columns;
mod draws;
mod expressions;
mod mixtures;
mod refusals;
