//! A recipe of operations on text and tokens, applied to samples.

use crate::Error;
use crate::operations::Step;
use crate::series::Pause;
use crate::text::{Document, DocumentKind, TextOperation, decode, memory_bytes};
use meetpoint_format::recipe::{DecodeText, Dtype, Encoding, SampleType, TensorSpec};

/// The memory of such a recipe. The numbers of operations equal their positions, since none
/// contains others.
#[derive(Debug)]
pub(super) struct TextPreparer {
    decode: DecodeText,
    document: Document,
}

impl TextPreparer {
    /// Creates the preparer for a recipe that starts with `decode_text`; `None` for other recipes.
    pub(super) fn new(steps: &[Step]) -> Option<Self> {
        let decode = steps.iter().find_map(|step| match step {
            Step::DecodeText(it) => Some(*it),
            _ => None,
        })?;
        Some(Self { decode, document: Document::default() })
    }

    /// Frees the memory for whole samples, which is otherwise reused.
    pub(super) fn free(&mut self) {
        self.document = Document::default();
    }

    /// Upper bound of the memory in bytes for a file.
    pub(super) fn memory_bytes(steps: &[Step], encoded: &[u8]) -> Result<u64, Error> {
        memory_bytes(encoded.len(), operations(steps, 0).next().is_some())
    }

    /// Like [`Self::memory_bytes`], for the result of the operations before a number.
    pub(super) fn resumed_bytes(
        steps: &[Step],
        first: usize,
        spec: &TensorSpec,
    ) -> Result<u64, Error> {
        memory_bytes(spec.bytes(), operations(steps, first).next().is_some())
    }

    /// Decodes a file, executes the operations, and returns the shape of the result.
    pub(super) fn run(
        &mut self,
        steps: &[Step],
        result: SampleType,
        encoded: &[u8],
        pause: Pause<'_>,
    ) -> Result<TensorSpec, Error> {
        let document = &mut self.document;
        document.kind = DocumentKind::Text;
        decode(self.decode, encoded, &mut document.text, pause)?;
        self.change(operations(steps, 0), result, pause)
    }

    /// Like [`Self::run`], for a tensor that is the result of the operations before `first`.
    pub(super) fn resume(
        &mut self,
        (steps, first): (&[Step], usize),
        result: SampleType,
        (spec, data): (&TensorSpec, &[u8]),
        pause: Pause<'_>,
    ) -> Result<TensorSpec, Error> {
        let document = &mut self.document;
        match spec.dtype {
            Dtype::Uint8 => {
                document.kind = DocumentKind::Text;
                // Stored text has no byte order mark.
                let text = std::str::from_utf8(data).map_err(|error| Error::Characters {
                    encoding: Encoding::Utf8.name(),
                    offset: error.valid_up_to(),
                })?;
                document.text.clear();
                document.text.push_str(text);
            }
            Dtype::Int32 => {
                document.kind = DocumentKind::Tokens(spec.channels as usize);
                document.tokens.clear();
                let tokens = data.as_chunks::<4>().0.iter().copied().map(i32::from_le_bytes);
                document.tokens.extend(tokens);
            }
            Dtype::Uint16 | Dtype::Float16 | Dtype::Float32 => {
                panic!("no operation takes {}", spec.dtype.name())
            }
        }
        self.change(operations(steps, first), result, pause)
    }

    fn change<'a>(
        &mut self,
        operations: impl Iterator<Item = &'a dyn TextOperation>,
        result: SampleType,
        pause: Pause<'_>,
    ) -> Result<TensorSpec, Error> {
        for operation in operations {
            operation.apply(&mut self.document, pause)?;
        }
        let length = u32::try_from(self.document.length()).expect("at most PIXELS_MAX elements");
        Ok(result.tensor((1, length)))
    }

    /// Writes the result of the last run.
    pub(super) fn write(&self, steps: &[Step], out: &mut [u8]) -> Result<(), Error> {
        match operations(steps, 0).last() {
            Some(operation) => operation.write(&self.document, out),
            None => {
                self.document.write(out);
                Ok(())
            }
        }
    }
}

/// The operations from a number on.
fn operations(steps: &[Step], first: usize) -> impl Iterator<Item = &dyn TextOperation> {
    steps[first..].iter().filter_map(|step| match step {
        Step::Text(operation) => Some(&**operation),
        _ => None,
    })
}
