//! The table of contents of the documentation.

use crate::layers::root;

/// A page without an entry in `docs/SUMMARY.md` is not on the site.
#[test]
fn the_summary_lists_every_page() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary reads");
    for folder in ["", "measurements/"] {
        let entries = std::fs::read_dir(docs.join(folder)).expect("a folder reads");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.into_string().expect("a name in UTF-8"));
        for name in names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md") {
            let link = format!("({folder}{name})");
            assert!(summary.contains(&link), "docs/SUMMARY.md does not list {folder}{name}");
        }
    }
}
