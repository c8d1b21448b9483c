//! Documents, comments and messages do not use phrases that readers of technical English stumble
//! over, and items do not have names that could mean anything.

use crate::layers::root;
use crate::tidy::sources;
use std::path::{Path, PathBuf};

/// Phrases, and what to write instead.
const PHRASES: [(&str, &str); 72] = [
    ("told", "reported, passed"),
    ("whoever", "the caller, the user"),
    ("anew", "again"),
    ("so often", "every …"),
    ("in vain", "without result"),
    ("held against", "compared with"),
    ("what became of", "the result of"),
    ("what becomes of", "the result of"),
    ("what came of", "the result of"),
    ("comes to nothing", "is discarded"),
    ("came to nothing", "was discarded"),
    ("come to nothing", "are discarded"),
    ("gone on with", "resumed"),
    ("go on with", "continue with"),
    ("goes on with", "continues with"),
    ("goes on where", "resumes"),
    ("how-many-eth", "the ordinal of"),
    ("without chance", "deterministic"),
    ("is no source", "is not a source"),
    ("is no number", "is not a number"),
    ("is no whole number", "is not a whole number"),
    ("is no picture", "is not a picture"),
    ("is no file", "is not a file"),
    ("is no folder", "is not a folder"),
    ("is no dataset", "is not a dataset"),
    ("is no socket", "is not a socket"),
    ("whether that is news", "whether it changed"),
    ("of no account", "ignored, meaningless"),
    ("out of turn", "out of order"),
    ("makes no sense", "is invalid"),
    ("is made of", "consists of"),
    ("are made of", "consist of"),
    ("tells of", "reports"),
    ("takes it long", "takes long"),
    ("as it came", "unchanged"),
    ("as they came", "unchanged"),
    ("that there is not", "that does not exist"),
    ("lets go of", "releases"),
    ("such as cannot be", "that cannot be"),
    ("be had", "be available"),
    ("comes twice", "occurs twice, is repeated"),
    ("come twice", "occur twice, are repeated"),
    ("so many", "this number of, `count`"),
    ("heard of", "received"),
    ("comes of", "results from"),
    ("has no place for", "cannot store"),
    ("or the like", "for example"),
    ("is there twice", "occurs twice"),
    ("lies nowhere", "is in no file"),
    ("lie nowhere", "are in no file"),
    ("lies elsewhere", "is in other files"),
    ("what it comes to", "the result of it"),
    ("comes a second time", "occurs a second time"),
    ("what helps", "the remedy"),
    ("says by what", "returns the evidence that"),
    ("looked at", "examined, checked"),
    ("for good", "permanently"),
    ("for ever", "forever"),
    ("has no one to go to", "cannot be reported"),
    ("left half done", "left inconsistent"),
    ("whether to go on", "whether to continue"),
    ("cannot go on", "cannot continue"),
    ("is no part of", "is not part of"),
    ("is no utf-8", "is not UTF-8"),
    ("is no failure", "is not a failure"),
    ("are no characters", "are not characters"),
    ("nobody to tell", "the message is lost"),
    ("where nobody says", "by default"),
    ("of no use", "not useful"),
    ("of no matter", "irrelevant"),
    ("at the most", "at most"),
    ("as people write", "with units, as typed"),
];

/// Words that no item's name contains, and what to call it instead.
const WORDS: [(&str, &str); 10] = [
    ("told", "reported, received"),
    ("untold", "unreported"),
    ("mended", "replaced, repaired"),
    ("picked", "selected, selection"),
    ("lie", "falsify, misreport"),
    ("lies", "is false, is at"),
    ("lied", "falsified"),
    ("lying", "false, inconsistent"),
    ("whoever", "any"),
    ("anew", "again, reset"),
];

/// Words that no type's name contains besides; `InPlace` is a standard term.
const TYPE_WORDS: [(&str, &str); 14] = [
    ("place", "position, location, slot"),
    ("places", "positions, slots"),
    ("kept", "retained"),
    ("whence", "origin"),
    ("deed", "operation, write"),
    ("fate", "outcome"),
    ("knob", "setting, limit, parameter"),
    ("knobs", "settings, limits, parameters"),
    ("maker", "builder, factory"),
    ("judge", "policy, evaluator"),
    ("outlook", "prediction"),
    ("weighed", "weighted, ranked"),
    ("heard", "received, event"),
    ("gathered", "collected"),
];

/// The file that lists the phrases.
const EXEMPT: &str = "tests/tests/language.rs";

/// Documents at the root and in docs/. Records of past measurements and changes stay as they are.
fn documents() -> Vec<PathBuf> {
    let entries = [root(), root().join("docs")].into_iter().flat_map(|folder| {
        std::fs::read_dir(folder).expect("a folder reads").map(|entry| entry.expect("an entry"))
    });
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter(|path| path.file_name().is_some_and(|name| name != "CHANGELOG.md"))
        .collect();
    found.sort();
    assert!(found.len() > 15, "only {} documents found", found.len());
    found
}

/// Python files and shell scripts of the repository, build outputs and environments left out.
fn scripts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder reads") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_output = name.starts_with('.') || ["target", "shared"].contains(&&*name);
            if path.is_dir() && !path.is_symlink() && !is_output {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "py" || end == "sh") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 40, "only {} scripts found", found.len());
    found
}

/// How a language writes comments and literals.
#[derive(Clone, Copy, PartialEq)]
enum Syntax {
    Rust,
    Script,
}

/// Comments and string literals of a source, with line ends where the source has them. Consecutive
/// comment lines join to one text; every other gap is a bar, so that no phrase extends over it.
fn prose(text: &str, syntax: Syntax) -> String {
    let comment = if syntax == Syntax::Rust { "//" } else { "#" };
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(comment) {
            let line = after.split('\n').next().unwrap_or_default();
            out.push_str(line.trim_start_matches(['/', '!', '#']));
            rest = &after[line.len()..];
        } else if let Some((hashes, after)) = raw_string(rest, syntax) {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = after.find(&end).unwrap_or(after.len());
            out.push_str(&after[..length]);
            out.push('|');
            rest = after.get(length + end.len()..).unwrap_or_default();
        } else if let Some(after) = quoted(rest, syntax, &mut out) {
            out.push('|');
            rest = after;
        } else {
            let is_blank = next.is_whitespace();
            if next == '\n' || !is_blank && !out.ends_with('|') {
                out.push(if next == '\n' { '\n' } else { '|' });
            }
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

/// The number of hashes of a raw string of Rust that begins here, and the text after its quote.
fn raw_string(rest: &str, syntax: Syntax) -> Option<(usize, &str)> {
    let after = rest.strip_prefix('r').filter(|_| syntax == Syntax::Rust)?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].strip_prefix('"').map(|after| (hashes, after))
}

/// Appends the literal that begins here, if one does, and returns the text after it.
fn quoted<'a>(rest: &'a str, syntax: Syntax, out: &mut String) -> Option<&'a str> {
    let quotes: &[&str] = match syntax {
        Syntax::Rust => &["\""],
        Syntax::Script => &["\"\"\"", "'''", "\"", "'"],
    };
    // A character of Rust; a lifetime has no second quote.
    if let Some(after) = rest.strip_prefix('\'').filter(|_| syntax == Syntax::Rust) {
        let length = if after.starts_with('\\') { 2 } else { after.chars().next()?.len_utf8() };
        return after.get(length..)?.strip_prefix('\'');
    }
    let quote = quotes.iter().find(|quote| rest.starts_with(**quote))?;
    let inside = &rest[quote.len()..];
    let mut at = 0;
    while at < inside.len() && !inside[at..].starts_with(quote) {
        let escaped = usize::from(inside[at..].starts_with('\\'));
        at += inside[at..].chars().take(1 + escaped).map(char::len_utf8).sum::<usize>();
    }
    // A backslash at the end of a line continues the text.
    out.push_str(&inside[..at].replace("\\\n", "\n"));
    Some(inside.get(at + quote.len()..).unwrap_or_default())
}

/// Each use of a phrase, as whole words, also across the end of a line.
fn uses(name: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let words: Vec<&str> = text.split_whitespace().collect();
    let lower = words.join(" ").to_lowercase();
    for (phrase, instead) in PHRASES {
        for (at, _) in lower.match_indices(phrase) {
            let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let before = lower[..at].chars().next_back();
            let after = lower[at + phrase.len()..].chars().next();
            if !is_letter(before) && !is_letter(after) {
                let context = lower[at..].chars().take(40).collect::<String>();
                found.push(format!("{}: \"{context}…\": write: {instead}", name.display()));
            }
        }
    }
    found
}

/// The items that a Rust source declares: whether it is a type, and its name.
fn items(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).filter_map(|line| {
        let keyword = |word: &&str| ["struct", "enum", "trait", "type", "fn", "mod"].contains(word);
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(keyword)?;
        let is_head = words[..at].iter().all(|word| {
            word.starts_with("pub") || word.ends_with(')') || ["const", "unsafe"].contains(word)
        });
        let name = words.get(at + 1).filter(|_| is_head)?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some((!["fn", "mod"].contains(&words[at]), &name[..end]))
    })
}

/// The words of a name in snake or camel case, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("one at least").extend(c.to_lowercase());
        }
    }
    words
}

/// Each item whose name contains a word that it should not.
fn unspecific(name: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (is_type, item) in items(text).filter(|(_, item)| *item != "InPlace") {
        let words = words_of(item);
        let of_types = TYPE_WORDS.iter().filter(|_| is_type);
        for (word, instead) in WORDS.iter().chain(of_types) {
            if words.iter().any(|it| it == word) {
                found.push(format!("{}: `{item}`: write: {instead}", name.display()));
            }
        }
    }
    found
}

#[test]
fn items_have_specific_names() {
    let mut found = Vec::new();
    for path in sources() {
        if path.ends_with(EXEMPT) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source reads");
        found.extend(unspecific(path.strip_prefix(root()).expect("below the root"), &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn unspecific_words_are_found_in_names_of_types_and_functions() {
    let count = |text: &str| unspecific(Path::new("a.rs"), text).len();
    assert_eq!(count("pub(crate) struct Told<T> {"), 1);
    assert_eq!(count("    pub const fn is_mended(&self)\nmod lies;\nenum SamplePlace {"), 3);
    assert_eq!(count("// struct Told\nstruct InPlace;\nfn place() {}\nlet told = 1;"), 0);
    assert_eq!(count("fn untolded() {}\nstruct Placement;"), 0);
}

#[test]
fn documents_use_plain_technical_english() {
    let mut found = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document reads");
        found.extend(uses(path.strip_prefix(root()).expect("below the root"), &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_and_messages_use_plain_technical_english() {
    let mut found = Vec::new();
    let rust = sources().into_iter().map(|path| (path, Syntax::Rust));
    for (path, syntax) in rust.chain(scripts().into_iter().map(|path| (path, Syntax::Script))) {
        let name = path.strip_prefix(root()).expect("below the root");
        if name != Path::new(EXEMPT) {
            let text = std::fs::read_to_string(&path).expect("a source reads");
            found.extend(uses(name, &prose(&text, syntax)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn phrases_are_found_as_whole_words_and_across_lines() {
    let count = |text: &str| uses(Path::new("a.md"), text).len();
    assert_eq!(count("It is told in the report, and held\nagainst the clock."), 2);
    assert_eq!(count("What becomes of it? It goes on where it was."), 2);
    assert_eq!(count("Untold stories; a stolid fellow; totally reported."), 0);
}

#[test]
fn phrases_are_found_in_comments_and_literals_and_not_in_code() {
    let count = |text: &str, syntax| uses(Path::new("a"), &prose(text, syntax)).len();
    let rust = |text: &str| count(text, Syntax::Rust);
    assert_eq!(rust("/// Held\n    /// against it.\nlet a = 1; // anew"), 2);
    assert_eq!(rust("f(\"told\", r#\"in \"vain\", or in vain\"#, '\"', 'a, \"anew\")"), 3);
    assert_eq!(rust("f(\"stored as they \\\n     came\")"), 1);
    assert_eq!(rust("let told = anew(whoever); x.told(&'a b)"), 0);
    assert_eq!(rust("/// In\nfn vain() {}\nf(\"in\", \"vain\", \"\\\"\")"), 0);
    let script = |text: &str| count(text, Syntax::Script);
    assert_eq!(script("# So often.\nx = told['anew'] + \"\"\"In\nvain\"\"\""), 3);
    assert_eq!(script("told = anew  # a comment\n"), 0);
}
