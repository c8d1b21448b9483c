//! Looks up the vectors of tokens in the rows of a table.

use super::{Document, TextOperation, safetensors, vocabulary};
use crate::Error;
use crate::series::Pause;
use half::f16;
use meetpoint_format::npy;
use meetpoint_format::recipe::{Dtype, Embed, FileContent};
use std::ops::Range;
use std::sync::Arc;

/// The location of a table's rows in its file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) rows: u64,
    pub(super) dim: u64,
    dtype: Dtype,
    data: Range<usize>,
}

impl Table {
    /// The table of a file, shared by all clones of its content; the error is the problem.
    pub(super) fn of(content: &FileContent) -> Result<Arc<Self>, String> {
        content.parsed(Self::parse)
    }

    fn parse(file: &[u8]) -> Result<Self, String> {
        let (shape, dtype, data) = if file.starts_with(b"\x93NUMPY") {
            let npy::Header { shape, dtype, data } = npy::decode(file)?;
            (shape.into_iter().map(u64::from).collect(), dtype, data)
        } else {
            safetensors::read(file)?
        };
        match (shape.as_slice(), dtype) {
            (&[rows, dim], Dtype::Float32 | Dtype::Float16) => Ok(Self { rows, dim, dtype, data }),
            _ => Err(format!(
                "it is {shape:?} of {}, not [tokens, dim] of float32 or float16",
                dtype.name()
            )),
        }
    }
}

/// `embed`, with its table.
#[derive(Debug)]
pub(crate) struct Embedder {
    table: Result<Arc<Table>, Error>,
    content: Option<FileContent>,
    dtype: Dtype,
}

impl Embedder {
    /// Creates the operation; if its file was not loaded or is invalid, every sample is an error.
    pub(crate) fn new(operation: &Embed) -> Self {
        let of_file = ("embed", &operation.table);
        let table = vocabulary::read(of_file, |content| {
            let table = Table::of(content)?;
            check_dim(&table, operation).map(|()| table)
        });
        let content = operation.table.content.clone();
        Self { table, content, dtype: operation.dtype }
    }
}

/// Checks that the rows have the number of elements in the recipe.
pub(super) fn check_dim(table: &Table, operation: &Embed) -> Result<(), String> {
    match (table.dim, u64::from(operation.dim)) {
        (found, wanted) if found == wanted => Ok(()),
        (found, wanted) => Err(format!("its rows have {found} elements, `dim` is {wanted}")),
    }
}

impl TextOperation for Embedder {
    fn apply(&self, document: &mut Document, pause: Pause<'_>) -> Result<(), Error> {
        let table = self.table.as_ref().map_err(Clone::clone)?;
        let is_out = |token: &&i32| u64::try_from(**token).is_ok_and(|row| row >= table.rows);
        match document.tokens.iter().find(is_out) {
            Some(token) => Err(Error::NoVector { token: *token, rows: table.rows }),
            None => pause(),
        }
    }

    fn write(&self, document: &Document, out: &mut [u8]) -> Result<(), Error> {
        let table = self.table.as_ref().map_err(Clone::clone)?;
        let file = self.content.as_ref().expect("the table was read from it").bytes();
        let data = &file[table.data.clone()];
        let row_bytes = table.dim as usize * table.dtype.bytes();
        let vectors = out.chunks_exact_mut(table.dim as usize * self.dtype.bytes());
        for (vector, token) in vectors.zip(&document.tokens) {
            let row = &data[token.cast_unsigned() as usize * row_bytes..][..row_bytes];
            match (table.dtype, self.dtype) {
                (Dtype::Float32, Dtype::Float16) => narrow(row, vector),
                (Dtype::Float16, Dtype::Float32) => widen(row, vector),
                _ => vector.copy_from_slice(row),
            }
        }
        Ok(())
    }
}

fn narrow(row: &[u8], vector: &mut [u8]) {
    let elements = row.as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes);
    for (bytes, element) in vector.as_chunks_mut::<2>().0.iter_mut().zip(elements) {
        *bytes = f16::from_f32(element).to_le_bytes();
    }
}

fn widen(row: &[u8], vector: &mut [u8]) {
    let elements = row.as_chunks::<2>().0.iter().copied().map(f16::from_le_bytes);
    for (bytes, element) in vector.as_chunks_mut::<4>().0.iter_mut().zip(elements) {
        *bytes = element.to_f32().to_le_bytes();
    }
}
