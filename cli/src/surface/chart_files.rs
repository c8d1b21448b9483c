//! Files of charts that the command line writes: one SVG, or a page that holds everything.

use anyhow::{Context, bail};
pub(crate) use meetpoint_report::html::{figure, page};
use meetpoint_report::write::place;
use std::path::Path;

/// What a file name asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One chart.
    Svg,
    /// A page with tables and charts.
    Html,
}

/// The kind that a file name asks for.
pub(crate) fn kind(path: &Path) -> anyhow::Result<Kind> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => Ok(Kind::Svg),
        Some("html" | "htm") => Ok(Kind::Html),
        _ => bail!(
            "{} ends neither in .svg nor in .html; the ending says what is drawn",
            path.display()
        ),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn file(path: &Path, content: &str) -> anyhow::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} names no file", path.display()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    place(folder.unwrap_or(Path::new(".")), name, content.as_bytes())?;
    Ok(())
}

/// Fails where a file could not be written, before the work that it tells of.
pub(crate) fn check_file(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a folder; name a file in it", path.display());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!(
            "{} cannot be written: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, access).with_context(|| {
        format!(
            "{} cannot be written: {} is not writable; name another place",
            path.display(),
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Kind, check_file, file, kind, page};
    use std::path::Path;

    #[test]
    fn the_ending_says_what_is_drawn() {
        assert_eq!(kind(Path::new("a.svg")).unwrap(), Kind::Svg);
        assert_eq!(kind(Path::new("x/a.html")).unwrap(), Kind::Html);
        let said = kind(Path::new("a.png")).unwrap_err().to_string();
        assert!(said.contains("a.png") && said.contains(".svg"), "{said}");
    }

    #[test]
    fn a_file_is_written_whole_and_a_wrong_place_is_named_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.html");
        check_file(&path).unwrap();
        file(&path, &page("T", "lead", "")).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("<title>T</title>"));
        assert!(check_file(folder.path()).is_err());
        let absent = folder.path().join("no/a.svg");
        assert!(check_file(&absent).unwrap_err().to_string().contains("make it first"));
    }
}
