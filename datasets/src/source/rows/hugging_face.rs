//! The features that the `datasets` library of Hugging Face records for columns, in the schema's
//! metadata under `huggingface` and in `dataset_info.json`: pictures, sounds and class labels.

use serde_json::Value;
use std::collections::BTreeMap;

/// Key of a schema's metadata.
pub(crate) const METADATA_KEY: &str = "huggingface";

/// Features by column name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Features {
    /// Columns of the type `Image`.
    pub(crate) images: Vec<String>,
    /// Columns of the type `Audio`.
    pub(crate) audios: Vec<String>,
    /// Columns of the type `ClassLabel`, with their names.
    pub(crate) classes: BTreeMap<String, Vec<String>>,
    /// Number of samples of each split, if recorded.
    pub(crate) split_samples: BTreeMap<String, u64>,
}

impl Features {
    /// From the metadata of a schema: `{"info": {"features": {…}}}`. Metadata that cannot be parsed
    /// are ignored, since they are only hints.
    pub(crate) fn of_metadata(text: &str) -> Self {
        let parsed: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        Self::of_info(&parsed["info"])
    }

    /// From the content of `dataset_info.json`.
    pub(crate) fn of_info(info: &Value) -> Self {
        let mut features = Self::default();
        for (name, feature) in info["features"].as_object().into_iter().flatten() {
            match feature["_type"].as_str() {
                Some("Image") => features.images.push(name.clone()),
                Some("Audio") => features.audios.push(name.clone()),
                Some("ClassLabel") => {
                    let names = feature["names"].as_array().into_iter().flatten();
                    let names = names.filter_map(Value::as_str).map(str::to_owned).collect();
                    features.classes.insert(name.clone(), names);
                }
                _ => {}
            }
        }
        for (name, split) in info["splits"].as_object().into_iter().flatten() {
            if let Some(samples) = split["num_examples"].as_u64() {
                features.split_samples.insert(name.clone(), samples);
            }
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::Features;

    #[test]
    fn features_are_found_by_type() {
        let features = Features::of_metadata(
            r#"{"info": {"features": {"img": {"_type": "Image"}, "n": {"dtype": "int64",
                "_type": "Value"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}},
                "splits": {"train": {"name": "train", "num_examples": 7}}}}"#,
        );
        assert_eq!(features.images, ["img"]);
        assert_eq!(features.classes["label"], ["cat", "dog"]);
        assert_eq!(features.split_samples["train"], 7);
        assert_eq!(Features::of_metadata("no JSON"), Features::default());
    }
}
