//! The command line of a bench: `--quick`, `--judge`, `--json FILE`, and what it names itself.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a bench was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// A tiny run that only shows that it works; targets are not judged.
    pub quick: bool,
    /// Whether a missed target is an error.
    pub judge: bool,
    /// Where to write the rows.
    pub json: Option<PathBuf>,
    /// Options of this bench, without dashes.
    pub own: BTreeMap<String, String>,
}

impl Options {
    /// Reads the command line; `own` names the options, each with a value, of this bench alone.
    pub fn from_args(own: &[&str]) -> anyhow::Result<Self> {
        Self::parse(std::env::args().skip(1), own)
    }

    fn parse(args: impl IntoIterator<Item = String>, own: &[&str]) -> anyhow::Result<Self> {
        // `cargo bench` says --bench; `cargo test` runs a bench without, to see that it works.
        let mut options = Self { quick: true, ..Self::default() };
        let mut asked_quick = false;
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => asked_quick = true,
                "--judge" => options.judge = true,
                "--json" => options.json = Some(value()?.into()),
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

fn list(own: &[&str]) -> String {
    own.iter().map(|name| format!(", --{name} VALUE")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> anyhow::Result<Options> {
        Options::parse(args.iter().map(|&arg| arg.to_owned()), &["directory"])
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options =
            parse(&["--bench", "--directory", "/x", "--json", "rows.json", "--quick", "--judge"]);
        let options = options.unwrap();
        assert!(options.quick && options.judge);
        assert_eq!(options.json, Some("rows.json".into()));
        assert_eq!(options.own["directory"], "/x");
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
