//! The role of each buffer in the message of a record batch.
//!
//! Buffers come in the order of the columns, depth first:
//! <https://arrow.apache.org/docs/format/Columnar.html#recordbatch-message>.

use crate::source::rows::ContentColumn;
use arrow_schema::{DataType, Schema};

/// Number of buffers of a column of a type; `None` if it depends on the message.
fn buffers(of: &DataType) -> Option<usize> {
    Some(match of {
        DataType::Null | DataType::RunEndEncoded(_, _) => 0,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
        DataType::Utf8View | DataType::BinaryView | DataType::Union(_, _) => return None,
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
            2 + buffers(item.data_type())?
        }
        DataType::ListView(item) | DataType::LargeListView(item) => 3 + buffers(item.data_type())?,
        DataType::FixedSizeList(item, _) => 1 + buffers(item.data_type())?,
        DataType::Struct(children) => {
            let mut count = 1;
            for child in children {
                count += buffers(child.data_type())?;
            }
            count
        }
        _ => 2,
    })
}

/// Index of the buffer with the bytes of the content, if the column has such a buffer.
pub(super) fn bytes_buffer(schema: &Schema, content: ContentColumn) -> Option<usize> {
    let is_bytes =
        |data_type: &DataType| matches!(data_type, DataType::Binary | DataType::LargeBinary);
    let mut before = 0;
    for field in &schema.fields()[..content.column] {
        before += buffers(field.data_type())?;
    }
    let field = schema.field(content.column);
    match (field.data_type(), content.bytes) {
        (data_type, None) if is_bytes(data_type) => Some(before + 2),
        (DataType::Struct(children), Some(child)) => {
            before += 1;
            for other in &children[..child] {
                before += buffers(other.data_type())?;
            }
            is_bytes(children[child].data_type()).then_some(before + 2)
        }
        _ => None,
    }
}
