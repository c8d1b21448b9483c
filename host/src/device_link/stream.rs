//! Converts a device's messages to events of the driver, until the link ends.

use super::{Inbound, Session};
use crate::clock::monotonic_ns;
use crate::driver::Driver;
use meetpoint_format::wire::Published;
use meetpoint_format::wire::device_message::Message;
use std::error::Error as _;
use std::sync::Arc;

/// Serves the stream. Returns `None` if this side closed it, otherwise why it ended.
pub(crate) async fn serve(
    mut inbound: Inbound,
    session: &Arc<Session>,
    driver: &Driver,
) -> Option<String> {
    loop {
        let received = tokio::select! {
            // Messages that have arrived are processed even if the link is being closed.
            biased;
            received = inbound.message() => received,
            () = session.closed() => return session.breach(),
        };
        match received {
            Ok(Some(message)) => {
                if let Some(message) = message.message {
                    handle(message, session, driver);
                }
            }
            // The device closes its stream in response to the end of ours.
            _ if session.is_closed() => return session.breach(),
            Ok(None) => return Some("it ended the link".to_owned()),
            // A status with a source was not sent by the device: the connection failed.
            Err(status) if status.source().is_some() => return Some("its link broke".to_owned()),
            Err(status) => return Some(format!("its link broke ({})", status.message())),
        }
    }
}

/// The times of a batch by this machine's clock, for a device with its own clock.
fn arrived(published: Published, now_ns: u64) -> Published {
    let took_ns = published.published_ns.saturating_sub(published.started_ns);
    Published { started_ns: now_ns.saturating_sub(took_ns), published_ns: now_ns, ..published }
}

fn handle(message: Message, session: &Arc<Session>, driver: &Driver) {
    match message {
        Message::Published(published) if session.is_stream() => {
            driver.published(session, &arrived(published, monotonic_ns()));
        }
        Message::Published(published) => driver.published(session, &published),
        Message::SlotData(data) => match session.take_piece(&data) {
            // Like progress, it shows that the device is alive.
            Ok(()) => driver.progress(session),
            Err(why) => session.break_off(why),
        },
        Message::Progress(_) => driver.progress(session),
        Message::Failed(failed) => driver.failed(session, &failed),
        Message::Draining(_) => {
            driver.leaving(session);
            session.close();
        }
        Message::Meters(meters) => {
            session.set_meters(meters);
            driver.meters_arrived();
        }
    }
}
