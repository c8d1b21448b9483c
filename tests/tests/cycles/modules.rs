//! The modules of a crate: their items, their imports, and the file that each path leads to.
//!
//! Items under `#[cfg(test)]` are left out: tests may import anything.

use super::tokens::{Token, TokenKind, tokens};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Names joined by `::`.
type Names = Vec<String>;

/// Imports of imports that are followed.
const DEPTH_MAX: usize = 32;

/// Keywords after which the name of an item stands.
const ITEMS: [&str; 8] =
    ["fn", "struct", "enum", "union", "trait", "type", "static", "macro_rules"];

#[derive(Debug, Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Names>,
    globs: Vec<Names>,
    /// Every path in it, with its line.
    paths: Vec<(Names, usize)>,
}

/// The modules of a crate; the first is the root.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: Vec<Module>,
    /// Files below the source folder, and the file of the module that each is a child of.
    pub(super) files: Vec<(PathBuf, Option<usize>)>,
}

/// Why a path leads to no module of the crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookupError {
    /// Another crate defines it.
    Foreign,
    /// No name of the module is its beginning.
    Unknown,
}

/// A path from one file to another: both files, and the line in the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) line: usize,
}

impl Modules {
    /// Reads the modules from a root file, `lib.rs` or `main.rs`, of a source folder.
    pub(super) fn read(folder: &Path, root: &str) -> Self {
        let mut modules = Self::default();
        modules.read_file(folder, PathBuf::from(root), None);
        modules
    }

    /// Reads a file as a module and returns its index.
    fn read_file(&mut self, folder: &Path, name: PathBuf, parent: Option<usize>) -> usize {
        let source = std::fs::read_to_string(folder.join(&name))
            .unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        let file = self.files.len();
        self.files.push((name, parent.map(|parent| self.all[parent].file)));
        let index = self.all.len();
        self.all.push(Module { file, parent, ..Module::default() });
        let tokens = tokens(&source);
        Reader { modules: self, folder, module: index }.read(&tokens);
        index
    }

    /// The file of the root module.
    pub(super) const ROOT: usize = 0;

    /// The file of the top-level module that contains a file; the root file contains itself.
    pub(super) fn top_of(&self, file: usize) -> usize {
        match self.files[file].1 {
            None | Some(Self::ROOT) => file,
            Some(parent) => self.top_of(parent),
        }
    }

    /// Every path that leads from one file to another one.
    pub(super) fn edges(&self) -> Vec<Edge> {
        let mut found = BTreeMap::new();
        for (index, module) in self.all.iter().enumerate() {
            for (names, line) in &module.paths {
                let Some(to) = self.file_of(index, names) else { continue };
                if to != module.file {
                    found.entry((module.file, to)).or_insert(*line);
                }
            }
        }
        found.into_iter().map(|((from, to), line)| Edge { from, to, line }).collect()
    }

    /// The file that defines what a path in a module names; `None` for another crate's.
    fn file_of(&self, module: usize, names: &Names) -> Option<usize> {
        let target = self.resolve(module, names, DEPTH_MAX).ok()?;
        Some(self.all[target].file)
    }

    /// The module that defines what a path names, or that module itself.
    fn resolve(&self, from: usize, names: &[String], depth: usize) -> Result<usize, LookupError> {
        let (first, rest) = names.split_first().ok_or(LookupError::Unknown)?;
        match first.as_str() {
            "crate" => self.walk(0, rest, depth),
            "self" => self.walk(from, rest, depth),
            "super" => self.walk(self.all[from].parent.unwrap_or(0), rest, depth),
            _ => self.find(from, names, depth),
        }
    }

    /// Follows names from a module of this crate, which defines what is not found in it: macros
    /// make items too.
    fn walk(&self, module: usize, names: &[String], depth: usize) -> Result<usize, LookupError> {
        match names.first().map(String::as_str) {
            None => Ok(module),
            Some("super") => self.walk(self.all[module].parent.unwrap_or(0), &names[1..], depth),
            Some("self") => self.walk(module, &names[1..], depth),
            Some(_) => match self.find(module, names, depth) {
                Err(LookupError::Unknown) => Ok(module),
                found => found,
            },
        }
    }

    /// What a name means in a module: a module, an item, an import, or an import by `*`.
    fn find(&self, at: usize, names: &[String], depth: usize) -> Result<usize, LookupError> {
        let (first, rest) = names.split_first().ok_or(LookupError::Unknown)?;
        let (module, depth) = (&self.all[at], depth.checked_sub(1).ok_or(LookupError::Unknown)?);
        let is_value = module.items.contains(first) || module.imports.contains_key(first);
        if let Some(child) = module.children.get(first)
            && (!rest.is_empty() || !is_value)
        {
            return self.walk(*child, rest, depth);
        }
        if module.items.contains(first) {
            return Ok(at);
        }
        if let Some(import) = module.imports.get(first) {
            // `use name;` of another crate would lead to itself.
            if import.first() == Some(first) {
                return Err(LookupError::Foreign);
            }
            let through: Names = import.iter().chain(rest).cloned().collect();
            return self.resolve(at, &through, depth).map_err(|_| LookupError::Foreign);
        }
        let opened = module.globs.iter().filter_map(|glob| self.resolve(at, glob, depth).ok());
        let found = opened.filter(|opened| *opened != at);
        let mut found = found.map(|opened| self.find(opened, names, depth));
        found.find(|found| *found != Err(LookupError::Unknown)).unwrap_or(Err(LookupError::Unknown))
    }
}

/// Reads the tokens of a file into its module and the modules inside it.
struct Reader<'a, 'b> {
    modules: &'a mut Modules,
    folder: &'b Path,
    module: usize,
}

impl Reader<'_, '_> {
    fn read(&mut self, tokens: &[Token]) {
        let own = self.module;
        // Modules in braces that are open, each with the depth of its brace.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(token) = tokens.get(at) {
            self.module = open.last().map_or(own, |(module, _)| *module);
            let module_depth = open.last().map_or(0, |(_, depth)| *depth);
            let next = |ahead: usize| tokens.get(at + ahead).map(|token| &token.kind);
            match &token.kind {
                TokenKind::Mark('#') => at = self.attribute(tokens, at),
                TokenKind::Mark('{') => (depth, at) = (depth + 1, at + 1),
                TokenKind::Mark('}') => {
                    depth = depth.saturating_sub(1);
                    open.pop_if(|(_, opened)| *opened > depth);
                    at += 1;
                }
                TokenKind::Name(word)
                    if word == "mod" && matches!(next(2), Some(TokenKind::Mark('{'))) =>
                {
                    if let Some(TokenKind::Name(name)) = next(1) {
                        open.push((self.open_inline(name), depth + 1));
                    }
                    (depth, at) = (depth + 1, at + 3);
                }
                TokenKind::Name(word)
                    if word == "mod" && matches!(next(2), Some(TokenKind::Mark(';'))) =>
                {
                    if let Some(TokenKind::Name(name)) = next(1) {
                        self.open_file(name, None);
                    }
                    at += 3;
                }
                TokenKind::Name(word) if word == "use" => {
                    at = self.import(tokens, at + 1, Names::new());
                }
                TokenKind::Name(word) if word == "pub" => at = after_visibility(tokens, at),
                TokenKind::Name(word) if depth == module_depth => {
                    self.item(word, next(1), next(2));
                    at = self.path(tokens, at);
                }
                TokenKind::Name(_) => at = self.path(tokens, at),
                TokenKind::Text(_) | TokenKind::Separator | TokenKind::Mark(_) => at += 1,
            }
        }
    }

    /// Remembers the name of an item, if `word` introduces one.
    fn item(&mut self, word: &str, next: Option<&TokenKind>, after: Option<&TokenKind>) {
        let name = match (next, after) {
            // `static mut NAME`, `macro_rules! name`.
            (Some(TokenKind::Name(mutable)), Some(TokenKind::Name(name))) if mutable == "mut" => {
                name
            }
            (Some(TokenKind::Mark('!')), Some(TokenKind::Name(name))) if word == "macro_rules" => {
                name
            }
            (Some(TokenKind::Name(name)), _) => name,
            _ => return,
        };
        if ITEMS.contains(&word) || (word == "const" && name != "fn") {
            self.modules.all[self.module].items.insert(name.clone());
        }
    }

    /// Takes a path, and all paths below it if it ends in braces.
    fn path(&mut self, tokens: &[Token], at: usize) -> usize {
        let is_separator =
            |at: usize| tokens.get(at).map(|t| &t.kind) == Some(&TokenKind::Separator);
        let line = tokens[at].line;
        let mut names = Names::new();
        let mut end = at;
        while let Some(TokenKind::Name(name)) = tokens.get(end).map(|token| &token.kind) {
            names.push(name.clone());
            end += 1;
            if !is_separator(end) {
                break;
            }
            end += 1;
        }
        if names.len() > 1 {
            self.modules.all[self.module].paths.push((names, line));
        }
        end.max(at + 1)
    }

    /// Takes what an import names after `prefix`: a path, an alias, `*`, or a list in braces.
    fn import(&mut self, tokens: &[Token], mut at: usize, mut names: Names) -> usize {
        let prefix = names.len();
        while let Some(Token { kind, line }) = tokens.get(at) {
            let module = &mut self.modules.all[self.module];
            match kind {
                TokenKind::Name(word) if word == "as" => {
                    if let Some(TokenKind::Name(alias)) =
                        tokens.get(at + 1).map(|token| &token.kind)
                    {
                        module.imports.insert(alias.clone(), names.clone());
                    }
                    module.paths.push((names.clone(), *line));
                    return at + 2;
                }
                TokenKind::Name(word) if word == "self" && names.len() == prefix && prefix > 0 => {}
                TokenKind::Name(word) => names.push(word.clone()),
                TokenKind::Separator => {}
                TokenKind::Mark('*') => {
                    module.paths.push((names.clone(), *line));
                    module.globs.push(names);
                    return at + 1;
                }
                TokenKind::Mark('{') => {
                    at += 1;
                    while !matches!(
                        tokens.get(at).map(|t| &t.kind),
                        Some(TokenKind::Mark('}')) | None
                    ) {
                        at = self.import(tokens, at, names.clone());
                        if matches!(tokens.get(at).map(|t| &t.kind), Some(TokenKind::Mark(','))) {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                TokenKind::Mark(_) | TokenKind::Text(_) => {
                    if let Some(last) = names.last() {
                        module.imports.insert(last.clone(), names.clone());
                        module.paths.push((names.clone(), *line));
                    }
                    return at;
                }
            }
            at += 1;
        }
        at
    }

    /// Skips an attribute; for `#[cfg(test)]` also its item, and for `#[path]` its module.
    fn attribute(&mut self, tokens: &[Token], at: usize) -> usize {
        let names: Vec<_> = tokens[at..].iter().take(8).map(|token| &token.kind).collect();
        let end = closed(tokens, at, ('[', ']'));
        let is_test = is_name(names.get(2), "cfg")
            && (is_name(names.get(4), "test")
                || is_name(names.get(4), "all") && is_name(names.get(6), "test"));
        if is_test && matches!(names.get(1), Some(TokenKind::Mark('['))) {
            return after_item(tokens, end);
        }
        if is_name(names.get(2), "path")
            && let Some(TokenKind::Text(path)) = names.get(4)
            && let Some(TokenKind::Name(name)) = tokens.get(end + 1).map(|token| &token.kind)
        {
            self.open_file(name, Some(path));
            return end + 3;
        }
        end
    }

    fn open_inline(&mut self, name: &str) -> usize {
        let index = self.modules.all.len();
        let file = self.modules.all[self.module].file;
        self.modules.all.push(Module { file, parent: Some(self.module), ..Module::default() });
        self.modules.all[self.module].children.insert(name.to_owned(), index);
        index
    }

    /// Reads the file of a module that is declared by `mod name;`.
    fn open_file(&mut self, name: &str, path: Option<&str>) {
        let (own, _) = &self.modules.files[self.modules.all[self.module].file];
        let beside = own.parent().unwrap_or(Path::new("")).to_path_buf();
        let stem = own.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let below = match stem {
            "mod" | "lib" | "main" => beside.clone(),
            stem => beside.join(stem),
        };
        let (flat, nested) = (below.join(format!("{name}.rs")), below.join(name).join("mod.rs"));
        let file = match path {
            Some(path) => beside.join(path),
            None if self.folder.join(&flat).is_file() => flat,
            None => nested,
        };
        let child = self.modules.read_file(self.folder, file, Some(self.module));
        self.modules.all[self.module].children.insert(name.to_owned(), child);
    }
}

fn is_name(kind: Option<&&TokenKind>, name: &str) -> bool {
    matches!(kind, Some(TokenKind::Name(found)) if found == name)
}

/// The index after `pub` and what restricts it, whose path is no use of that module.
fn after_visibility(tokens: &[Token], at: usize) -> usize {
    let words = ["crate", "super", "self", "in"];
    let restricts =
        |kind: &TokenKind| matches!(kind, TokenKind::Name(name) if words.contains(&name.as_str()));
    let [open, first] = [1, 2].map(|ahead| tokens.get(at + ahead).map(|token| &token.kind));
    match (open, first) {
        (Some(TokenKind::Mark('(')), Some(kind)) if restricts(kind) => {
            closed(tokens, at, ('(', ')'))
        }
        _ => at + 1,
    }
}

/// The index after the bracket that closes the first one opened from `at` on.
fn closed(tokens: &[Token], mut at: usize, (open, close): (char, char)) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if token.kind == TokenKind::Mark(open) {
            depth += 1;
        } else if token.kind == TokenKind::Mark(close) {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                break;
            }
        }
    }
    at
}

/// The index after an item: its `;`, or the brace that closes it.
fn after_item(tokens: &[Token], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.kind {
            TokenKind::Mark('#') => at = closed(tokens, at, ('[', ']')),
            TokenKind::Mark('(') => at = closed(tokens, at, ('(', ')')),
            TokenKind::Mark('[') => at = closed(tokens, at, ('[', ']')),
            TokenKind::Mark('{') => {
                let end = closed(tokens, at, ('{', '}'));
                // The braces of `use a::{b, c};` are followed by its end.
                let ends = tokens.get(end).is_some_and(|token| token.kind == TokenKind::Mark(';'));
                return end + usize::from(ends);
            }
            TokenKind::Mark(';' | ',' | '}') => {
                return at + usize::from(token.kind == TokenKind::Mark(';'));
            }
            TokenKind::Mark(_) | TokenKind::Name(_) | TokenKind::Text(_) | TokenKind::Separator => {
                at += 1;
            }
        }
    }
    at
}
