//! The built program as a process, with real devices, real signals and real files.

mod bad_input;
mod collate;
mod columns;
mod dataset;
mod every_operation;
mod faults;
mod file_size;
mod in_place;
mod jobs;
mod leftovers;
mod misfits;
mod modes;
mod operations;
mod output;
mod plan;
mod prepare;
mod presto;
mod profile;
mod recipes;
mod reproduce;
mod series;
mod simulate;
mod strategies;
mod support;
mod unpack;
mod views;
