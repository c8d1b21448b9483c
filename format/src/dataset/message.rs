//! Arrow IPC messages.

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// A message with its header, ready to be framed.
pub(super) fn finish_message(
    mut builder: FlatBufferBuilder<'_>,
    header_type: arrow_ipc::MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body_bytes: i64,
) -> Vec<u8> {
    let message = {
        let mut message = arrow_ipc::MessageBuilder::new(&mut builder);
        message.add_version(arrow_ipc::MetadataVersion::V5);
        message.add_header_type(header_type);
        message.add_header(header);
        message.add_bodyLength(body_bytes);
        message.finish()
    };
    builder.finish(message, None);
    builder.finished_data().to_vec()
}
