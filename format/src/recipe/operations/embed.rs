//! `embed`: replaces tokens by the vectors of a table.

use super::Data;
use super::tokenize::SHA256;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, Layout, NamedFile, SampleType};

/// `torch.nn.functional.embedding`: each token becomes the row with its number.
///
/// The table is a NumPy file, or a safetensors file with one tensor, of `[tokens, dim]` in float32
/// or float16; if its type is not `dtype`, each element is rounded to the nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// The table.
    pub table: NamedFile,
    /// Elements of a vector.
    pub dim: u32,
    /// Type of the elements: float16 or float32.
    pub dtype: Dtype,
}

impl Embed {
    /// Most elements of a vector.
    pub const DIM_MAX: u32 = 65_536;

    /// Names of the element types of the result.
    const DTYPES: &'static [&'static str] = &["float32", "float16"];
}

impl Data for Embed {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "embed",
        about: "looks the vector of each token up in a table",
        phase: Phase::Text,
        targets: OnTargets::Refuses,
        takes: &[InputType::TOKENS],
        gives: OutputType {
            kind: ValueKind::Embedding,
            dtype: Property::Key("dtype"),
            size: Property::Same,
            channels: Property::Key("dim"),
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "table",
                KeyType::File,
                Value::File(std::borrow::Cow::Borrowed("embedding.npy")),
                "the table, `.npy` or `.safetensors`",
            ),
            SHA256,
            Key::required(
                "dim",
                KeyType::WholeIn { least: 1, most: Self::DIM_MAX },
                Value::Whole(768),
                "elements of a vector",
            ),
            Key::optional(
                "dtype",
                KeyType::Word { choices: Self::DTYPES },
                Value::Word(Dtype::Float32.name()),
                "the element type",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let sha256 = values.optional_digest("sha256").map(str::to_owned);
        Self {
            table: NamedFile { sha256, ..NamedFile::new(values.file("table")) },
            dim: values.whole("dim"),
            dtype: values.named("dtype", Dtype::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        let [path, digest] = self.table.values();
        vec![path, digest, Value::Whole(self.dim), Value::Word(self.dtype.name())]
    }

    fn file(&self) -> Option<&NamedFile> {
        Some(&self.table)
    }

    fn file_mut(&mut self) -> Option<&mut NamedFile> {
        Some(&mut self.table)
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let length = sample.expect_series().length;
        sample.set_text(length, (self.dim, self.dtype, Layout::Ntc));
        Ok(())
    }
}
