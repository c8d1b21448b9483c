//! The kinds of sinks.

/// Kinds of sinks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum SinkKind {
    /// A file for each sample, under its key; further columns in `metadata.jsonl`.
    #[default]
    Folder,
    /// Tar shards as WebDataset reads them.
    WebDataset,
    /// Parquet with the image struct and the metadata of Hugging Face.
    Parquet,
    /// MosaicML streaming shards with `index.json`.
    Mds,
    /// One msgpack file with its index files, as datadings writes it.
    Datadings,
    /// Shards of `tf.train.Example` records.
    TfRecord,
}

impl SinkKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Folder, Self::WebDataset, Self::Parquet, Self::Mds, Self::Datadings, Self::TfRecord];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::WebDataset => "webdataset",
            Self::Parquet => "parquet",
            Self::Mds => "mds",
            Self::Datadings => "datadings",
            Self::TfRecord => "tfrecord",
        }
    }

    /// Its description in error messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::Folder => "a folder of files",
            Self::WebDataset => "WebDataset",
            Self::Parquet => "Parquet",
            Self::Mds => "MDS",
            Self::Datadings => "datadings",
            Self::TfRecord => "TFRecord",
        }
    }

    /// Whether its samples are spread over several files of about the same size.
    pub fn has_shards(self) -> bool {
        !matches!(self, Self::Folder | Self::Datadings)
    }
}
