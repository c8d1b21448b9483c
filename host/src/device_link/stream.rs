//! Converts a device's messages to events of the link, until the link ends.

use super::{Inbound, LinkEvents, Session};
use crate::clock::monotonic_ns;
use meetpoint_format::wire::Published;
use meetpoint_format::wire::device_message::Message;
use std::error::Error as _;
use std::sync::Arc;

/// Serves the stream. Returns `None` if this side closed it, otherwise why it ended.
pub(crate) async fn serve(
    mut inbound: Inbound,
    session: &Arc<Session>,
    events: &dyn LinkEvents,
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
                    handle(message, session, events);
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

fn handle(message: Message, session: &Arc<Session>, events: &dyn LinkEvents) {
    match message {
        Message::Published(published) if session.is_stream() => {
            accept(&arrived(published, monotonic_ns()), session, events);
        }
        Message::Published(published) => accept(&published, session, events),
        Message::SlotData(data) => match session.take_piece(&data) {
            // Like progress, it shows that the device is alive.
            Ok(()) => events.progress(session),
            Err(why) => session.break_off(why),
        },
        Message::Progress(_) => events.progress(session),
        Message::Failed(failed) => events.failed(session, &failed),
        Message::Draining(_) => {
            events.leaving(session);
            session.close();
        }
        Message::Meters(meters) => {
            session.set_meters(meters);
            events.meters_arrived();
        }
    }
}

/// Takes over a published slot, if the device owns it.
fn accept(published: &Published, session: &Arc<Session>, events: &dyn LinkEvents) {
    let slot = published.slot;
    match session.lease(slot) {
        Some(lease) => events.published(session, lease, published),
        None => {
            session.break_off(format!("it published slot {slot}, which is not its own to give"));
        }
    }
}
