//! The address at which ranks that are processes connect, from the package.

use crate::{errors, guarded};
use meetpoint_host::collective::{
    Attempt, Listener, RendezvousAddress, RendezvousConfig, TOKEN_BYTES, Token,
};
use meetpoint_link::TokenError;
use pyo3::prelude::*;
use std::path::PathBuf;
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
    /// `unix:PATH` or `tcp://HOST:PORT`.
    place: String,
    token: Option<Vec<u8>>,
    listener: Option<Py<RankListener>>,
    /// The run, and the number of its attempt.
    attempt: (String, u64),
    /// A description of what this rank runs.
    job: String,
    /// Longest silence of a connection, in seconds.
    silence: Option<f64>,
}

/// The token in a file. See `_native.pyi`.
#[guarded]
#[pyfunction]
pub(crate) fn rank_token(py: Python<'_>, file: PathBuf) -> PyResult<Vec<u8>> {
    let read = py.detach(|| Token::read(&file)).map_err(|error| {
        errors::plain(py, "SettingError", (error.to_string(), TokenError::REMEDY.to_owned()))
    });
    read.map(|token| token.0.to_vec())
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
        let token = self.token.map(|bytes| {
            let token = <[u8; TOKEN_BYTES]>::try_from(bytes).map(Token);
            token.map_err(|_| {
                errors::plain(py, "SettingError", format!("a token has {TOKEN_BYTES} bytes"))
            })
        });
        let token = token.transpose()?;
        let silence = self.silence.map(|seconds| {
            let silence = Duration::try_from_secs_f64(seconds).ok().filter(|it| !it.is_zero());
            silence.ok_or_else(|| {
                let message = format!("rank_link_timeout is {seconds}");
                let remedy = "set rank_link_timeout to a number of seconds above 0".to_owned();
                errors::plain(py, "SettingError", (message, remedy))
            })
        });
        let (run, number) = self.attempt;
        let listener = self.listener.and_then(|listener| {
            let mut held = listener.get().listener.lock().unwrap_or_else(PoisonError::into_inner);
            held.take()
        });
        Ok(RendezvousConfig {
            place,
            listener,
            token,
            rank,
            ranks,
            attempt: Attempt { run, number },
            job: self.job,
            limit,
            silence: silence.transpose()?,
        })
    }
}
