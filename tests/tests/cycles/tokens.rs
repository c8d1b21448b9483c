//! Rust source as tokens: names, path separators and punctuation, each with its line.
//!
//! Comments, numbers, characters and lifetimes leave no token, so nothing in them reads as a path.

/// What the module reader distinguishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or a keyword.
    Name(String),
    /// The content of a string literal.
    Text(String),
    /// `::`.
    Separator,
    /// Any other character.
    Mark(char),
}

/// A token and the line, from 1, on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) line: usize,
}

/// The tokens of a source file.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut reader = Reader { rest: source, line: 1, found: Vec::new() };
    while reader.step() {}
    reader.found
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token>,
}

impl Reader<'_> {
    /// Skips `bytes` and counts their lines.
    fn skip(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }

    fn push(&mut self, kind: TokenKind, bytes: usize) {
        self.found.push(Token { kind, line: self.line });
        self.skip(bytes);
    }

    /// Takes one token or one piece without a token; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip(comment_bytes(self.rest));
        } else if let Some(bytes) = raw_string_bytes(self.rest) {
            let text = self.rest[..bytes].trim_start_matches(['b', 'c', 'r']).trim_matches('#');
            self.push(TokenKind::Text(text.trim_matches('"').to_owned()), bytes);
        } else if first == '"' || ["b\"", "c\""].iter().any(|start| self.rest.starts_with(start)) {
            let start = self.rest.find('"').expect("it begins a string") + 1;
            let bytes = start + string_bytes(&self.rest[start..]);
            let text = self.rest[start..bytes].trim_end_matches('"').to_owned();
            self.push(TokenKind::Text(text), bytes);
        } else if first == '\'' {
            self.skip(quote_bytes(self.rest));
        } else if first.is_ascii_digit() {
            self.skip(self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len()));
        } else if is_name(first) {
            let raw = if self.rest.starts_with("r#") { 2 } else { 0 };
            let name = &self.rest[raw..];
            let name = &name[..name.find(|c| !is_name(c)).unwrap_or(name.len())];
            self.push(TokenKind::Name(name.to_owned()), raw + name.len());
        } else if self.rest.starts_with("::") {
            self.push(TokenKind::Separator, 2);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.push(TokenKind::Mark(first), first.len_utf8());
        }
        true
    }
}

/// Bytes of a block comment, which may hold others.
fn comment_bytes(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Bytes of a raw string literal, if the text begins with one.
fn raw_string_bytes(text: &str) -> Option<usize> {
    let behind = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let content = behind[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = content.find(&end).map_or(content.len(), |at| at + end.len());
    Some(text.len() - content.len() + length)
}

/// Bytes up to and with the quote that ends a string.
fn string_bytes(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of a character literal or of a lifetime.
fn quote_bytes(text: &str) -> usize {
    let inside = &text[1..];
    let mut characters = inside.char_indices();
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            // The escaped character itself may be a quote.
            let from = at + escaped.len_utf8();
            1 + inside[from..].find('\'').map_or(inside.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => 1 + at + 1,
        _ => {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            1 + inside.find(|c| !is_name(c)).unwrap_or(inside.len())
        }
    }
}

#[test]
fn strings_comments_characters_and_lifetimes_hold_no_names() {
    let source = r##"
        // crate::a
        /* crate::b /* crate::c */ crate::d */
        let x: &'static str = "crate::e \" crate::f";
        let y = (r#"crate::g"#, b"crate::h", 'i', '\'', '"', 0x1f_u32);
        crate::j
    "##;
    let found = tokens(source);
    let names: Vec<_> = found
        .iter()
        .filter_map(|token| match &token.kind {
            TokenKind::Name(name) => Some(name.as_str()),
            TokenKind::Text(_) | TokenKind::Separator | TokenKind::Mark(_) => None,
        })
        .collect();
    assert_eq!(names, ["let", "x", "str", "let", "y", "crate", "j"]);
    assert_eq!(found.last().map(|token| token.line), Some(6));
    let texts = found.iter().filter(|token| matches!(token.kind, TokenKind::Text(_))).count();
    assert_eq!(texts, 3);
}
