//! Compares the schema in a part's footer with that of the format.

use super::Prepared;
use super::columns::{Columns, ContentKind};
use super::schema::{
    CRC32C, ENTRY_POINTS, FORMAT, FORMAT_KEY, IMAGE, KEY, KIND_KEY, LABEL, PREPARED_KEY, VERSION,
    VERSION_KEY,
};
use arrow_schema::Schema;
use std::sync::Arc;

/// Compares the schema of a part's footer with that of the format, and returns the part's columns;
/// the error says what differs.
pub(super) fn check(found: arrow_ipc::Schema<'_>) -> Result<Columns, String> {
    let pair = |key: &str| {
        let mut pairs = found.custom_metadata().into_iter().flatten();
        pairs.find(|pair| pair.key() == Some(key)).and_then(|pair| pair.value())
    };
    match (pair(FORMAT_KEY), pair(VERSION_KEY)) {
        (Some(FORMAT), Some(text)) if text == VERSION.to_string() => {}
        (Some(FORMAT), Some(text)) => {
            return Err(format!("schema version is {text}, this program reads version {VERSION}"));
        }
        _ => return Err(format!("schema has no `{FORMAT_KEY}` = `{FORMAT}` with a version")),
    }
    if found.endianness() != arrow_ipc::Endianness::Little {
        return Err("written big-endian".to_owned());
    }
    let fields = found.fields().ok_or("schema has no columns")?;
    for (index, (name, type_name, nullable)) in COLUMNS.into_iter().enumerate() {
        if index >= fields.len() {
            return Err(format!("column {index} is missing, expected `{name}` {type_name}"));
        }
        let field = fields.get(index);
        // The content has the name that the dataset gives it.
        let has_name = field.name() == Some(name) || name == IMAGE;
        let fits = has_name
            && type_of(field) == type_name
            && field.dictionary().is_none()
            && field.nullable() == nullable;
        if !fits {
            return Err(format!(
                "column {index} is `{}` {}{}, expected `{name}` {type_name}",
                field.name().unwrap_or_default(),
                type_of(field),
                if field.nullable() { " nullable" } else { "" },
            ));
        }
    }
    described(found)
}

/// The columns of a part: kind and name of the content, and the further columns.
fn described(found: arrow_ipc::Schema<'_>) -> Result<Columns, String> {
    let fields = found.fields().ok_or("schema has no columns")?;
    let content = fields.get(1);
    let pair = |key: &str| {
        let mut pairs = content.custom_metadata().into_iter().flatten().rev();
        pairs.find(|pair| pair.key() == Some(key)).and_then(|pair| pair.value())
    };
    let said = pair(KIND_KEY);
    let kind = ContentKind::ALL.into_iter().find(|kind| Some(kind.name()) == said);
    let kind = kind.ok_or_else(|| {
        let said = said.unwrap_or_default();
        format!("column 1 has `{KIND_KEY}` {said:?}, expected image, audio, text, bytes or none")
    })?;
    // Opening a dataset calls this for each part, so a part without further columns skips the
    // conversion.
    let extra = match fields.len() > COLUMNS.len() {
        false => Schema::empty(),
        true => {
            let schema = arrow_ipc::convert::try_fb_to_schema(found);
            let schema = schema.map_err(|error| error.to_string())?;
            Schema::new(schema.fields().iter().skip(COLUMNS.len()).cloned().collect::<Vec<_>>())
        }
    };
    let name = content.name().unwrap_or_default().to_owned();
    let prepared = pair(PREPARED_KEY).map(serde_json::from_str::<Prepared>).transpose();
    let prepared = prepared.map_err(|error| format!("`{PREPARED_KEY}` of column 1: {error}"))?;
    let columns = Columns { kind, name, extra: Arc::new(extra), prepared };
    columns.check()?;
    Ok(columns)
}

/// The columns that a reader needs, in order: name, type, whether it may be null.
pub(super) const COLUMNS: [(&str, &str, bool); 5] = [
    (KEY, "Utf8", false),
    (IMAGE, "LargeBinary", false),
    (LABEL, "Int32", true),
    (CRC32C, "UInt32", false),
    (ENTRY_POINTS, "Binary", true),
];

fn type_of(field: arrow_ipc::Field<'_>) -> &'static str {
    match field.type_type() {
        arrow_ipc::Type::Utf8 => "Utf8",
        arrow_ipc::Type::LargeBinary => "LargeBinary",
        arrow_ipc::Type::Binary => "Binary",
        arrow_ipc::Type::Int => match field.type_as_int() {
            Some(int) if int.bitWidth() == 32 && int.is_signed() => "Int32",
            Some(int) if int.bitWidth() == 32 => "UInt32",
            _ => "an integer of another width",
        },
        _ => "of another type",
    }
}
