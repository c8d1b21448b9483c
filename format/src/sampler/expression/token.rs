//! Splits the characters of an expression into tokens.

use super::Fault;

/// A token and its first character, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: TokenKind,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A name without quotes; a word of the grammar unless it was in backquotes.
    Word(String),
    /// A name in backquotes.
    Name(String),
    Text(String),
    /// Without its sign, so that the smallest 64-bit integer can be written.
    Whole(u64),
    Number(f64),
    /// An operator, a parenthesis or a comma.
    Sign(&'static str),
    /// The end, after the last token.
    End,
}

/// Longer ones first, so that `<=` is not `<`.
const SIGNS: [&str; 15] =
    ["==", "!=", "<=", ">=", "<", ">", "=", "(", ")", ",", "+", "-", "*", "/", "%"];

/// The tokens of a text, the last of which is [`Is::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut next = 0;
    while let Some(&first) = chars.get(next) {
        let at = next + 1;
        if first.is_whitespace() {
            next += 1;
            continue;
        }
        let kind = match first {
            '\'' | '"' => TokenKind::Text(quoted(&chars, &mut next)?),
            '`' => TokenKind::Name(quoted(&chars, &mut next)?),
            _ if first.is_ascii_digit() || (first == '.' && is_digit(&chars, next + 1)) => {
                number(&chars, &mut next)?
            }
            _ if first.is_alphabetic() || first == '_' => {
                let rest = chars[next..].iter();
                let word: String =
                    rest.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).collect();
                next += word.chars().count();
                TokenKind::Word(word)
            }
            _ => sign(&chars, &mut next)?,
        };
        tokens.push(Token { at, kind });
    }
    tokens.push(Token { at: chars.len() + 1, kind: TokenKind::End });
    Ok(tokens)
}

fn is_digit(chars: &[char], at: usize) -> bool {
    chars.get(at).is_some_and(char::is_ascii_digit)
}

/// The text between quotes; the quote itself is written twice.
fn quoted(chars: &[char], next: &mut usize) -> Result<String, Fault> {
    let (at, quote) = (*next + 1, chars[*next]);
    let mut text = String::new();
    *next += 1;
    loop {
        match (chars.get(*next), chars.get(*next + 1)) {
            (Some(one), Some(two)) if *one == quote && *two == quote => {
                text.push(quote);
                *next += 2;
            }
            (Some(one), _) if *one == quote => {
                *next += 1;
                return Ok(text);
            }
            (Some(one), _) => {
                text.push(*one);
                *next += 1;
            }
            (None, _) => {
                let problem = format!("the quote {quote} is not closed");
                return Err(Fault { at, problem, remedy: format!("end it with {quote}") });
            }
        }
    }
}

fn number(chars: &[char], next: &mut usize) -> Result<TokenKind, Fault> {
    let start = *next;
    let digits = |next: &mut usize| {
        while chars.get(*next).is_some_and(|c| c.is_ascii_digit() || *c == '_') {
            *next += 1;
        }
    };
    digits(next);
    let mut is_whole = true;
    if chars.get(*next) == Some(&'.') {
        is_whole = false;
        *next += 1;
        digits(next);
    }
    if matches!(chars.get(*next), Some('e' | 'E')) {
        is_whole = false;
        *next += 1;
        if matches!(chars.get(*next), Some('+' | '-')) {
            *next += 1;
        }
        digits(next);
    }
    let text: String = chars[start..*next].iter().filter(|c| **c != '_').collect();
    let read = match is_whole {
        true => text.parse().ok().map(TokenKind::Whole),
        false => text.parse().ok().filter(|number: &f64| number.is_finite()).map(TokenKind::Number),
    };
    read.ok_or_else(|| Fault {
        at: start + 1,
        problem: format!("{text} is not a number"),
        remedy: super::WHOLE.to_owned(),
    })
}

fn sign(chars: &[char], next: &mut usize) -> Result<TokenKind, Fault> {
    let stands = |sign: &&&str| chars[*next..].iter().copied().take(sign.len()).eq(sign.chars());
    let at = *next + 1;
    match SIGNS.iter().find(stands) {
        Some(&sign) => {
            *next += sign.len();
            Ok(TokenKind::Sign(sign))
        }
        None => Err(Fault {
            at,
            problem: format!("unexpected character {:?}", chars[*next]),
            remedy: "use the operators == != < <= > >= + - * / %, and, or, not, in, is null"
                .to_owned(),
        }),
    }
}
