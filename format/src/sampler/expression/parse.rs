//! Parses the tokens of an expression to a tree, by recursive descent.
//!
//! ```text
//! or         = and {"or" and}
//! and        = not {"and" not}
//! not        = "not" not | comparison
//! comparison = sum [("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") sum
//!                   | ["not"] "in" "(" sum {"," sum} ")" | "is" ["not"] "null"]
//! sum        = product {("+" | "-") product}
//! product    = unary {("*" | "/" | "%") unary}
//! unary      = "-" unary | number | text | "true" | "false" | column | "(" or ")"
//! ```

use super::token::{Token, TokenKind};
use super::{Arithmetic, Comparison, Fault, Node, Term};

/// Deepest nesting of parentheses, `not` and signs.
const DEPTH_MAX: usize = 64;
/// Maximum number of operators of one expression, which bounds the depth of its tree.
const OPERATORS_MAX: usize = 1000;

/// Words of the grammar, which are column names only in backquotes.
const WORDS: [&str; 8] = ["and", "or", "not", "in", "is", "null", "true", "false"];

pub(super) fn parse(tokens: &[Token]) -> Result<Node, Fault> {
    let mut parser = Parser { tokens, next: 0, depth: 0, operators: 0 };
    let root = parser.or()?;
    match parser.peek() {
        Token { kind: TokenKind::End, .. } => Ok(root),
        token => Err(unexpected(token, "an operator such as `and`, or the end")),
    }
}

struct Parser<'t> {
    tokens: &'t [Token],
    next: usize,
    depth: usize,
    operators: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t Token {
        // The last token is the end, which is never consumed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.peek().kind, TokenKind::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn take_sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let TokenKind::Sign(found) = self.peek().kind else { return None };
        signs.contains(&found).then(|| {
            self.next += 1;
            found
        })
    }

    fn expect_sign(&mut self, sign: &'static str) -> Result<(), Fault> {
        match self.take_sign(&[sign]) {
            Some(_) => Ok(()),
            None => Err(unexpected(self.peek(), &format!("{sign:?}"))),
        }
    }

    /// Counts an operator at a token.
    fn count(&mut self) -> Result<(), Fault> {
        self.operators += 1;
        if self.operators <= OPERATORS_MAX {
            return Ok(());
        }
        let problem = format!("the expression has more than {OPERATORS_MAX} operators");
        let remedy = "use `in (…)` for many values, or the sampler \"indices\"".to_owned();
        Err(Fault { at: self.peek().at, problem, remedy })
    }

    fn nested<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let problem = format!("the expression is nested more than {DEPTH_MAX} deep");
            let remedy = "leave out parentheses that change nothing".to_owned();
            return Err(Fault { at: self.peek().at, problem, remedy });
        }
        let found = inside(self);
        self.depth -= 1;
        found
    }

    fn or(&mut self) -> Result<Node, Fault> {
        let mut left = self.and()?;
        while self.take_word("or") {
            self.count()?;
            let right = self.and()?;
            left = Node { at: left.at, term: Term::Or(Box::new(left), Box::new(right)) };
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, Fault> {
        let mut left = self.not()?;
        while self.take_word("and") {
            self.count()?;
            let right = self.not()?;
            left = Node { at: left.at, term: Term::And(Box::new(left), Box::new(right)) };
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Node, Fault> {
        let at = self.peek().at;
        if self.take_word("not") {
            let inside = self.nested(Self::not)?;
            return Ok(Node { at, term: Term::Not(Box::new(inside)) });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Node, Fault> {
        let left = self.sum()?;
        let at = left.at;
        if let Some(sign) = self.take_sign(&["==", "=", "!=", "<", "<=", ">", ">="]) {
            let how = comparison(sign);
            self.count()?;
            let right = self.sum()?;
            let term = Term::Compare(how, Box::new(left), Box::new(right));
            return Ok(Node { at, term });
        }
        if self.take_word("is") {
            let is_not = self.take_word("not");
            if !self.take_word("null") {
                return Err(unexpected(self.peek(), "`null`"));
            }
            let found = Node { at, term: Term::IsNull(Box::new(left)) };
            return Ok(negated(found, is_not));
        }
        let is_not = self.is_word("not");
        if is_not {
            self.next += 1;
        }
        if self.take_word("in") {
            let values = self.values()?;
            let found = Node { at, term: Term::In(Box::new(left), values) };
            return Ok(negated(found, is_not));
        }
        if is_not {
            return Err(unexpected(self.peek(), "`in`"));
        }
        Ok(left)
    }

    fn values(&mut self) -> Result<Vec<Node>, Fault> {
        self.expect_sign("(")?;
        let mut values = vec![self.sum()?];
        while self.take_sign(&[","]).is_some() {
            values.push(self.sum()?);
        }
        self.expect_sign(")")?;
        Ok(values)
    }

    fn sum(&mut self) -> Result<Node, Fault> {
        let mut left = self.product()?;
        while let Some(sign) = self.take_sign(&["+", "-"]) {
            self.count()?;
            let how = if sign == "+" { Arithmetic::Add } else { Arithmetic::Subtract };
            left = calculated(how, left, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, Fault> {
        let mut left = self.unary()?;
        while let Some(sign) = self.take_sign(&["*", "/", "%"]) {
            self.count()?;
            let how = match sign {
                "*" => Arithmetic::Multiply,
                "/" => Arithmetic::Divide,
                _ => Arithmetic::Remainder,
            };
            left = calculated(how, left, self.unary()?);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, Fault> {
        let token = self.peek();
        let at = token.at;
        if self.take_sign(&["-"]).is_some() {
            if let Token { kind: TokenKind::Whole(number), .. } = self.peek() {
                let least = 0_i64.checked_sub_unsigned(*number);
                let term = Term::Whole(least.ok_or_else(|| too_long(token, *number))?);
                self.next += 1;
                return Ok(Node { at, term });
            }
            let inside = self.nested(Self::unary)?;
            let negated = |term| Term::Negate(Box::new(Node { at: inside.at, term }));
            let term = match inside.term {
                Term::Whole(number) => {
                    number.checked_neg().map_or_else(|| negated(Term::Whole(number)), Term::Whole)
                }
                Term::Number(number) => Term::Number(-number),
                term => negated(term),
            };
            return Ok(Node { at, term });
        }
        if self.take_sign(&["("]).is_some() {
            let inside = self.nested(Self::or)?;
            self.expect_sign(")")?;
            return Ok(Node { at, term: inside.term });
        }
        let value = "a column, a number, a text in quotes, or \"(\"";
        let term = match &token.kind {
            TokenKind::Whole(number) => {
                Term::Whole(i64::try_from(*number).map_err(|_| too_long(token, *number))?)
            }
            TokenKind::Number(number) => Term::Number(*number),
            TokenKind::Text(text) => Term::Text(text.clone()),
            TokenKind::Name(name) => Term::Column(name.clone()),
            TokenKind::Word(word) if word.eq_ignore_ascii_case("true") => Term::Flag(true),
            TokenKind::Word(word) if word.eq_ignore_ascii_case("false") => Term::Flag(false),
            TokenKind::Word(word) if WORDS.iter().any(|it| word.eq_ignore_ascii_case(it)) => {
                return Err(unexpected(token, value));
            }
            TokenKind::Word(word) => Term::Column(word.clone()),
            TokenKind::Sign(_) | TokenKind::End => return Err(unexpected(token, value)),
        };
        self.next += 1;
        Ok(Node { at, term })
    }
}

fn comparison(sign: &str) -> Comparison {
    match sign {
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => Comparison::Equal,
    }
}

fn calculated(how: Arithmetic, left: Node, right: Node) -> Node {
    Node { at: left.at, term: Term::Arithmetic(how, Box::new(left), Box::new(right)) }
}

fn negated(node: Node, is_not: bool) -> Node {
    match is_not {
        true => Node { at: node.at, term: Term::Not(Box::new(node)) },
        false => node,
    }
}

fn too_long(token: &Token, number: u64) -> Fault {
    let problem = format!("{number} is not a signed 64-bit integer");
    Fault { at: token.at, problem, remedy: super::WHOLE.to_owned() }
}

fn unexpected(token: &Token, expected: &str) -> Fault {
    let found = match &token.kind {
        TokenKind::Word(word) => format!("unexpected `{word}`"),
        TokenKind::Name(name) => format!("unexpected column `{name}`"),
        TokenKind::Text(text) => format!("unexpected text {text:?}"),
        TokenKind::Whole(number) => format!("unexpected number {number}"),
        TokenKind::Number(number) => format!("unexpected number {number}"),
        TokenKind::Sign(sign) => format!("unexpected {sign:?}"),
        TokenKind::End => "the expression ends too early".to_owned(),
    };
    Fault { at: token.at, problem: found, remedy: format!("write {expected} there") }
}
