//! The command line of a bench: `--quick`, `--judge`, `--json FILE`, and options of its own.
//!
//! Relative paths are relative to the folder where the command was typed, which is not the working
//! directory of a bench: Cargo runs it in the folder of its package.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The options of a bench.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// A tiny run that only shows that the bench works; targets are not checked.
    pub quick: bool,
    /// Whether a missed target is an error.
    pub judge: bool,
    /// Absolute path of the file to write the rows to.
    pub json: Option<PathBuf>,
    /// Options of this bench, without dashes.
    pub own: BTreeMap<String, String>,
    /// Where the command was typed.
    pub directory: PathBuf,
}

impl Options {
    /// Reads the command line; `own` names the options, each with a value, of this bench alone.
    pub fn from_args(own: &[&str]) -> anyhow::Result<Self> {
        Self::parse(std::env::args().skip(1), own, invoking_directory()?)
    }

    /// The path given as the option `name`, made absolute.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.own.get(name).map(|path| self.directory.join(path))
    }

    fn parse(
        args: impl IntoIterator<Item = String>,
        own: &[&str],
        directory: PathBuf,
    ) -> anyhow::Result<Self> {
        // `cargo bench` passes --bench; `cargo test` runs a bench without it, to see that it works.
        let mut options = Self { quick: true, directory, ..Self::default() };
        let mut asked_quick = false;
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => asked_quick = true,
                "--judge" => options.judge = true,
                "--json" => options.json = Some(options.directory.join(value()?)),
                "--bench" => options.quick = false,
                _ => match arg.strip_prefix("--").filter(|name| own.contains(name)) {
                    Some(name) => {
                        let value = value()?;
                        options.own.insert(name.to_owned(), value);
                    }
                    None => bail!(
                        "no option {arg}; there are --quick, --judge, --json FILE{}",
                        list(own)
                    ),
                },
            }
        }
        options.quick |= asked_quick;
        Ok(options)
    }
}

/// The folder where the command was typed.
///
/// `cargo bench` and `cargo test` run a bench in the folder of its package and pass on no other
/// folder, but the parent process is then Cargo itself, still in the folder where it was started.
fn invoking_directory() -> anyhow::Result<PathBuf> {
    let current = std::env::current_dir().context("reading the current folder")?;
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let parent = std::fs::read_link(format!("/proc/{}/cwd", std::os::unix::process::parent_id()));
    Ok(choose_directory(current, package.as_deref(), parent.ok()))
}

/// The parent's folder where Cargo runs the bench in `package`, else the current one.
fn choose_directory(current: PathBuf, package: Option<&Path>, parent: Option<PathBuf>) -> PathBuf {
    match parent {
        Some(parent) if package == Some(current.as_path()) => parent,
        _ => current,
    }
}

fn list(own: &[&str]) -> String {
    own.iter().map(|name| format!(", --{name} VALUE")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> anyhow::Result<Options> {
        let args = args.iter().map(|&arg| arg.to_owned());
        Options::parse(args, &["directory"], "/typed/here".into())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options =
            parse(&["--bench", "--directory", "/x", "--json", "rows.json", "--quick", "--judge"]);
        let options = options.unwrap();
        assert!(options.quick && options.judge);
        assert_eq!(options.json, Some("/typed/here/rows.json".into()));
        assert_eq!(options.own["directory"], "/x");
    }

    #[test]
    fn relative_paths_are_relative_to_where_the_command_was_typed() {
        let path = |text: &str| parse(&["--directory", text]).unwrap().path("directory");
        assert_eq!(path("../x"), Some("/typed/here/../x".into()));
        assert_eq!(path("/x"), Some("/x".into()));
        assert_eq!(parse(&[]).unwrap().path("directory"), None);
    }

    #[test]
    fn a_bench_that_cargo_runs_takes_paths_from_where_cargo_was_started() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let typed = || Some(PathBuf::from("/typed/here"));
        let chosen = |current: &Path, package, parent| {
            choose_directory(current.to_path_buf(), package, parent)
        };
        assert_eq!(chosen(package, Some(package), typed()), Path::new("/typed/here"));
        assert_eq!(chosen(package, Some(package), None), package);
        // Started by hand, or by a program that changed the folder.
        assert_eq!(chosen(package, None, typed()), package);
        assert_eq!(chosen(Path::new("/other"), Some(package), typed()), Path::new("/other"));
    }

    #[test]
    fn only_cargo_bench_runs_in_full() {
        assert!(!parse(&["--bench"]).unwrap().quick);
        assert!(parse(&[]).unwrap().quick);
    }

    #[test]
    fn unknown_and_unfinished_options_are_errors() {
        let said = parse(&["--fast"]).unwrap_err().to_string();
        assert!(said.contains("--fast") && said.contains("--directory VALUE"), "{said}");
        assert!(parse(&["--json"]).unwrap_err().to_string().contains("--json needs a value"));
    }
}
