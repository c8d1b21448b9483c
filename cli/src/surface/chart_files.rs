//! Chart files that commands write: one SVG, or an HTML page with tables and charts.

use super::fault::Fault;
use anyhow::Context;
use meetpoint_diagnose::shown;
use meetpoint_report::write::place;
use std::path::Path;

/// The format that a file name selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartFormat {
    /// One chart.
    Svg,
    /// A page with tables and charts.
    Html,
}

/// The format that a file name selects.
pub(crate) fn kind(path: &Path) -> anyhow::Result<ChartFormat> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => Ok(ChartFormat::Svg),
        Some("html" | "htm") => Ok(ChartFormat::Html),
        _ => {
            let message = format!("cannot determine the format of {}", shown(path));
            Err(Fault::new("unknown_format", message, "end the name in .svg or .html").into())
        }
    }
}

/// Writes a file completely or not at all.
pub(crate) fn file(path: &Path, content: &str) -> anyhow::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not the name of a file", shown(path)))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    place(folder.unwrap_or(Path::new(".")), name, content.as_bytes())?;
    Ok(())
}

/// Fails if the file cannot be written, before the work starts.
pub(crate) fn check_file(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        let message = format!("{} is a folder", shown(path));
        return Err(Fault::new("is_a_folder", message, "name a file in it").into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let message = format!("{} cannot be written: no folder {}", shown(path), shown(folder));
        return Err(Fault::new("no_folder", message, "create the folder").into());
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, access).with_context(|| {
        let message =
            format!("{} cannot be written: {} is not writable", shown(path), shown(folder));
        Fault::new("folder_not_writable", message, "name a file in another folder")
    })
}

#[cfg(test)]
mod tests {
    use super::{ChartFormat, check_file, file, kind};
    use std::path::Path;

    #[test]
    fn the_extension_selects_the_chart_format() {
        assert_eq!(kind(Path::new("a.svg")).unwrap(), ChartFormat::Svg);
        assert_eq!(kind(Path::new("x/a.html")).unwrap(), ChartFormat::Html);
        let said = kind(Path::new("a.png")).unwrap_err().to_string();
        assert!(said.contains("a.png"), "{said}");
    }

    #[test]
    fn a_file_is_written_whole_and_an_invalid_path_is_refused_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.html");
        check_file(&path).unwrap();
        file(&path, "all of it").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "all of it");
        assert!(check_file(folder.path()).is_err());
        let absent = folder.path().join("no/a.svg");
        assert!(check_file(&absent).unwrap_err().to_string().contains("no folder"));
    }
}
