//! `--power PRESET|FILE`: the watts, wear and prices from which modelled figures are computed.

use anyhow::Context;
use meetpoint_sim::power::{PowerModel, presets};
use meetpoint_storage::files::read_text;
use std::path::Path;

/// The model that the option names; by default, the bundled preset.
///
/// The name of a preset takes precedence over a file with this name; `./server` is always the file.
pub(crate) fn model(choice: Option<&str>) -> anyhow::Result<PowerModel> {
    let Some(choice) = choice else { return Ok(PowerModel::bundled()) };
    if presets().iter().any(|preset| preset.name == choice) {
        return Ok(PowerModel::preset(choice)?);
    }
    let looks_like_a_file = choice.contains(['/', '.']) || Path::new(choice).exists();
    if !looks_like_a_file {
        return Ok(PowerModel::preset(choice)?);
    }
    let text = read_text(Path::new(choice))
        .with_context(|| format!("failed to read the power file {choice}"))?;
    Ok(PowerModel::parse(&text, choice)?)
}

#[cfg(test)]
mod tests {
    use super::model;
    use meetpoint_sim::power::presets;

    #[test]
    fn a_preset_a_file_and_nothing_each_give_a_model() {
        assert_eq!(model(None).unwrap().profile(), "server");
        assert_eq!(model(Some("desktop")).unwrap().profile(), "desktop");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, presets()[0].text.replace("\"server\"", "\"mine\"")).unwrap();
        assert_eq!(model(path.to_str()).unwrap().profile(), "mine");
    }

    #[test]
    fn a_misspelt_preset_lists_the_presets_and_a_missing_file_is_named() {
        let error = model(Some("sever")).unwrap_err().to_string();
        assert!(error.contains("no power preset sever"), "{error}");
        let error = model(Some("no/such.toml")).unwrap_err().to_string();
        assert_eq!(error, "failed to read the power file no/such.toml");
    }

    #[test]
    fn a_device_is_refused_before_it_is_read() {
        let error = model(Some("/dev/null")).unwrap_err();
        assert!(error.root_cause().downcast_ref::<std::io::Error>().is_some(), "{error:?}");
    }
}
