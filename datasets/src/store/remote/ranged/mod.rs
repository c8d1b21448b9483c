//! Datasets in stores, read in ranges through a cache that the processes of a host share.
//!
//! In reading order: `blocks` (the unit of the cache), `state` (which blocks are cached, in memory
//! that processes share), `cache_folder` (the folder of a dataset's blocks), `cache` (the file of
//! blocks, evictions), `request` (one range, with retries), `queue` (blocks that wait to be
//! fetched), `ends` (the ends of parts, with their footers), `in_use` (errors for readers),
//! `folder` (all of it as a [`RemoteFolder`](meetpoint_prepare::RemoteFolder)).

mod blocks;
mod cache;
mod cache_folder;
mod ends;
mod folder;
mod in_use;
mod queue;
mod request;
mod state;

pub(in crate::store) use folder::StoreFolder;
