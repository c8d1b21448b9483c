//! A child process that serves several loaders of this process: one for each rank.

use super::connect::CALL_LIMIT;
use super::spawn::DeviceProcess;
use super::{absolute, first_connection};
use crate::config::DeviceSource;
use crate::{DeviceName, Error, SpawnDevice, StopHandle};
use meetpoint_link::Target;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// A running device that serves several hosts. Dropping it ends the process.
#[derive(Debug)]
pub struct SharedDevice {
    socket: PathBuf,
    /// Dropped to end the process.
    end: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl SharedDevice {
    /// Starts a device for `hosts` hosts and waits, within limits, until it answers.
    pub fn start(
        spawn: &SpawnDevice,
        datasets: &[PathBuf],
        hosts: u32,
        stop: &StopHandle,
    ) -> Result<Self, Error> {
        let (spawn, datasets, stop) = (spawn.clone(), absolute(datasets)?, stop.clone());
        let (answer, answered) = sync_channel(1);
        let (end, ending) = channel();
        // A device ends with the thread that started it, so this thread lives as long as the
        // device.
        let body = move || keep(&spawn, &datasets, hosts, &stop, &answer, &ending);
        let keeper = std::thread::Builder::new().name("shared-device".to_owned()).spawn(body);
        let keeper = keeper.map_err(Error::Thread)?;
        // All waits of the thread are bounded.
        let socket = answered.recv().map_err(|_| Error::Panicked)??;
        Ok(Self { socket, end: Some(end), keeper: Some(keeper) })
    }

    /// How a loader connects to it.
    pub fn source(&self) -> DeviceSource {
        DeviceSource::Connect { socket: self.socket.clone() }
    }
}

impl Drop for SharedDevice {
    fn drop(&mut self) {
        self.end.take();
        if let Some(keeper) = self.keeper.take() {
            // A panic was reported where it happened.
            let _ = keeper.join();
        }
    }
}

fn keep(
    spawn: &SpawnDevice,
    datasets: &[PathBuf],
    hosts: u32,
    stop: &StopHandle,
    answer: &SyncSender<Result<PathBuf, Error>>,
    ending: &Receiver<()>,
) {
    let opened = open(spawn, datasets, hosts, stop);
    let (mut process, socket) = match opened {
        Ok((process, socket)) => (process, Ok(socket)),
        Err(error) => {
            // The waiting thread may have been stopped.
            let _ = answer.send(Err(error));
            return;
        }
    };
    let _ = answer.send(socket);
    // Nothing is ever sent: the other end is dropped.
    while let Err(RecvTimeoutError::Timeout) = ending.recv_timeout(CALL_LIMIT) {}
    process.end(stop);
}

/// Starts it and waits until it listens.
fn open(
    spawn: &SpawnDevice,
    datasets: &[PathBuf],
    hosts: u32,
    stop: &StopHandle,
) -> Result<(DeviceProcess, PathBuf), Error> {
    let mut process = DeviceProcess::start(spawn, datasets, hosts)?;
    let socket = process.socket().to_path_buf();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let described = runtime.map_err(Error::Thread)?.block_on(async {
        let mut connection =
            first_connection(&mut process, &Target::Socket(socket.clone()), stop).await?;
        connection.describe().await
    });
    match described {
        Ok(_) => Ok((process, socket)),
        Err(error) => {
            // If the device process has ended, its exit explains more than the failed call.
            process.wait(super::ENDING_LIMIT);
            process.check_alive(false)?;
            match super::stopped::if_stopped(process.id()) {
                Some(loss) => Err(Error::DeviceLost { device: DeviceName::Shared, loss }),
                None => Err(error.of_process(|| DeviceName::Shared)),
            }
        }
    }
}
