//! Computational storage devices with primitive requests, driven as preparers.
//!
//! The terms are those of SNIA's computational storage architecture:
//!
//! | term | here |
//! |---|---|
//! | CSx, a computational storage device | [`Csx`] |
//! | CSF, a function that it executes | [`FunctionId`]: the recipe of a job |
//! | AFDM, allocated function data memory | [`Afdm`] |
//! | storage request | [`Csx::load`] |
//! | compute request | [`Csx::compute`] |
//! | copy request | [`Csx::copy`] |
//! | batch request, serial | [`Csx::run`], of a [`PipelineJob`] |
//! | completion | [`JobCompletion`]: bytes and device time of each leg |
//!
//! This interface is for devices that have only these primitives. An agent in front of such a
//! device, or the host, drives it: [`CsxPreparer`] turns each batch into a pipeline job. A device
//! that prepares whole batches is an agent itself: hosts reach it over the link, and its workers
//! call a [`Preparer`](crate::Preparer).
//!
//! In reading order: `device` (the interface), `preparer` (jobs from batches), [`EmulatedCsx`] with
//! `engine` (a device in this process, with memory of a fixed size).

mod device;
mod emulated;
mod engine;
mod preparer;

pub use crate::csx_error::{CsxRefusal, FunctionId};
pub use device::{
    Afdm, Computed, Csx, CsxError, CsxProperties, Input, JobCompletion, Leg, LegTotals, PipelineJob,
};
pub use emulated::EmulatedCsx;
pub use preparer::{CsxPreparer, EmulatedCsxPreparers, pipeline_job};
