//! The counts of `unsafe` in UNSAFE.md are those of the sources, crate by crate.

use crate::layers::root;
use crate::tidy::sources;
use std::collections::BTreeMap;
use std::path::Path;

/// Uses of `unsafe` in the sources of a package, and in its tests, benches and examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    shipped: usize,
    tests: usize,
}

/// The folder of the package that a source belongs to, below the root.
fn package_of(source: &Path) -> String {
    let folder = source.ancestors().find(|folder| folder.join("Cargo.toml").is_file());
    let folder = folder.expect("every source is in a package");
    folder.strip_prefix(root()).expect("below the root").display().to_string()
}

/// Whether a source is only compiled for tests, benches or examples.
fn is_of_tests(source: &Path) -> bool {
    let below = source.strip_prefix(root()).expect("below the root");
    below.iter().any(|part| {
        let part = part.to_string_lossy();
        let name = part.trim_end_matches(".rs");
        ["tests", "benches", "examples", "fuzz", "measure"].contains(&name)
            || name.ends_with("_tests")
    })
}

/// Blocks, functions, implementations and declarations marked as unsafe in a source.
fn count(text: &str) -> usize {
    let forms = ["{", "fn ", "impl ", "impl<", "extern ", "trait "];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| line.match_indices("unsafe").map(move |(at, word)| (line, at, word)))
        .filter(|(line, at, word)| {
            let after = line[at + word.len()..].trim_start();
            let is_form = after.is_empty() || forms.iter().any(|form| after.starts_with(form));
            !line[..*at].ends_with(is_word) && is_form
        })
        .count()
}

/// The rows `| crate | shipped | tests |` of the table of a document.
fn documented(document: &str) -> BTreeMap<String, Count> {
    let rows = document.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, shipped, tests] = cells[..] else { return None };
        let (shipped, tests) = (shipped.parse().ok()?, tests.parse().ok()?);
        Some((name.trim_matches('`').to_owned(), Count { shipped, tests }))
    });
    rows.collect()
}

#[test]
fn the_documented_counts_are_those_of_the_sources() {
    let mut counted = BTreeMap::<String, Count>::new();
    for source in sources() {
        let found = count(&std::fs::read_to_string(&source).expect("a source reads"));
        if found > 0 {
            let counts = counted.entry(package_of(&source)).or_default();
            let is_of_tests = is_of_tests(&source);
            *(if is_of_tests { &mut counts.tests } else { &mut counts.shipped }) += found;
        }
    }
    let text = std::fs::read_to_string(root().join("UNSAFE.md")).expect("UNSAFE.md reads");
    let table: Vec<String> = counted
        .iter()
        .map(|(name, count)| format!("| `{name}` | {} | {} |", count.shipped, count.tests))
        .collect();
    let table = table.join("\n");
    assert!(counted.len() > 5, "only {} packages found", counted.len());
    assert_eq!(documented(&text), counted, "the table of UNSAFE.md must be:\n{table}");
}

#[test]
fn uses_are_counted_and_words_are_not() {
    // Written so that this file does not count itself.
    let text = "# { a() }; # impl Send for X {}\n// # { b() }\nlet c = #\n'#-inline' #_code \
                # fn d() {}\npub # extern \"C\" fn e() {}"
        .replace('#', concat!("un", "safe"));
    assert_eq!(count(&text), 5);
    let table = "| crate | shipped | tests |\n|---|---|---|\n| `host` | 21 | 0 |\n| a | b | c |";
    let expected = BTreeMap::from([("host".to_owned(), Count { shipped: 21, tests: 0 })]);
    assert_eq!(documented(table), expected);
}
