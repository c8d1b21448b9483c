//! Converts a device's messages to events of the link, until the link ends.

use super::{Inbound, LinkEvents, Session};
use crate::causes::{Breach, LossCause};
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
) -> Option<LossCause> {
    loop {
        let received = tokio::select! {
            // Messages that have arrived are processed even if the link is being closed.
            biased;
            received = inbound.message() => received,
            () = session.closed() => return session.broken_off(),
        };
        match received {
            Ok(Some(message)) => {
                if let Some(message) = message.message {
                    handle(message, session, events);
                }
            }
            // The device closes its stream in response to the end of ours.
            _ if session.is_closed() => return session.broken_off(),
            Ok(None) => return Some(LossCause::LinkEnded),
            // A status with a source was not sent by the device: the connection failed.
            Err(status) if status.source().is_some() => {
                return Some(LossCause::LinkBroke { detail: None });
            }
            Err(status) => {
                return Some(LossCause::LinkBroke { detail: Some(status.message().to_owned()) });
            }
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
            Err(cause) => session.break_off(cause),
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
        None => session.break_off(Breach::SlotNotOwned { slot }.into()),
    }
}
