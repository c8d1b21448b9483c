//! The address at which ranks that are processes connect, from the package.

use crate::{errors, guarded};
use meetpoint_host::collective::{
    Listener, RendezvousAddress, RendezvousConfig, TOKEN_BYTES, Token,
};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A listening socket of rank 0. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct RankListener {
    /// `None` once a loader has taken it.
    listener: Mutex<Option<Listener>>,
    port: Option<u16>,
}

#[guarded]
#[pymethods]
impl RankListener {
    #[new]
    fn new(py: Python<'_>, place: &str) -> PyResult<Self> {
        let bound =
            py.detach(|| RendezvousAddress::parse(place).and_then(|place| Listener::bind(&place)));
        let listener = bound.map_err(|error| errors::of_host(py, &error.into()))?;
        let port = listener.port();
        Ok(Self { listener: Mutex::new(Some(listener)), port })
    }

    #[getter]
    fn port(&self) -> Option<u16> {
        self.port
    }
}

/// A dictionary with exactly these keys.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MeetingSettings {
    /// `unix:PATH` or `tcp:HOST:PORT`.
    place: String,
    token: Vec<u8>,
    listener: Option<Py<RankListener>>,
    /// A description of what this rank runs.
    job: String,
}

impl MeetingSettings {
    pub(crate) fn meeting(
        self,
        py: Python<'_>,
        rank: u32,
        ranks: u32,
        limit: Duration,
    ) -> PyResult<RendezvousConfig> {
        let place = RendezvousAddress::parse(&self.place);
        let place = place.map_err(|error| errors::of_host(py, &error.into()))?;
        let token: [u8; TOKEN_BYTES] = self.token.try_into().map_err(|_| {
            errors::plain(py, "SettingError", format!("a token has {TOKEN_BYTES} bytes"))
        })?;
        let listener = self.listener.and_then(|listener| {
            let mut held = listener.get().listener.lock().unwrap_or_else(PoisonError::into_inner);
            held.take()
        });
        Ok(RendezvousConfig {
            place,
            listener,
            token: Token(token),
            rank,
            ranks,
            job: self.job,
            limit,
        })
    }
}
