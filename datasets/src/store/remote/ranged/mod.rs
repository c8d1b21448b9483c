//! Datasets in stores, read in ranges through a cache that the processes of a host share.
//!
//! In reading order: `blocks` (the unit of the cache), `state` (which blocks are cached, in memory
//! that processes share), `cache` (the file of blocks, evictions), `request` (one range, with
//! retries), `folder` (all of it as a [`RemoteFolder`](meetpoint_prepare::RemoteFolder)).

mod blocks;
mod cache;
mod folder;
mod request;
mod state;

pub(in crate::store) use folder::StoreFolder;
