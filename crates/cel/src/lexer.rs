//! Text to tokens. What cannot be read is skipped and reported, as the reference implementation's lexer does.

use super::ast::{Issue, Literal};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Literal(Literal),
    /// A number or string that is written properly and has no value, such as one that is too big.
    Invalid(&'static str),
    Ident(String),
    /// Operators and brackets, and the word `in`.
    Sign(&'static str),
    End,
}

#[derive(Debug, Clone)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    /// In code points.
    pub(super) at: usize,
    pub(super) text: String,
}

const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%",
];

pub(super) fn lex(source: &str) -> (Vec<Lexeme>, Vec<Issue>) {
    let letters: Vec<char> = source.chars().collect();
    let mut lexer = Lexer { letters: &letters, at: 0 };
    let (mut lexemes, mut issues) = (Vec::new(), Vec::new());
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        if start >= letters.len() {
            lexemes.push(Lexeme { token: Token::End, at: start, text: "<EOF>".to_owned() });
            return (lexemes, issues);
        }
        if let Some(token) = lexer.token() {
            lexemes.push(Lexeme { token, at: start, text: lexer.text(start, lexer.at) });
            continue;
        }
        // The letter that failed belongs to what is skipped, except at the end, where there is none.
        let stop = (lexer.at + 1).min(letters.len());
        let text = lexer.text(start, stop);
        issues.push(Issue { at: start, text: format!("Syntax error: token recognition error at: '{text}'") });
        lexer.at = stop.max(start + 1);
    }
}

struct Lexer<'a> {
    letters: &'a [char],
    at: usize,
}

impl Lexer<'_> {
    fn text(&self, from: usize, to: usize) -> String {
        self.letters.get(from..to).unwrap_or_default().iter().collect()
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek(0) {
                Some('\t' | ' ' | '\r' | '\n' | '\u{c}') => self.at += 1,
                Some('/') if self.peek(1) == Some('/') => {
                    while self.peek(0).is_some_and(|letter| letter != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// The next token; on `None`, `at` is the letter where it went wrong.
    fn token(&mut self) -> Option<Token> {
        let first = self.peek(0)?;
        if let Some(prefix) = self.string_prefix() {
            return self.string(prefix);
        }
        if first.is_ascii_digit() || (first == '.' && self.peek(1).is_some_and(|next| next.is_ascii_digit())) {
            return Some(self.number());
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let start = self.at;
            while self.peek(0).is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                self.at += 1;
            }
            return Some(match self.text(start, self.at).as_str() {
                "in" => Token::Sign("in"),
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                word => Token::Ident(word.to_owned()),
            });
        }
        if let Some(sign) = SIGNS.iter().find(|sign| sign.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))) {
            self.at += sign.len();
            return Some(Token::Sign(sign));
        }
        if matches!(first, '=' | '&' | '|') {
            self.at += 1;
        }
        None
    }

    fn number(&mut self) -> Token {
        let start = self.at;
        if self.peek(0) == Some('0')
            && self.peek(1) == Some('x')
            && self.peek(2).is_some_and(|letter| letter.is_ascii_hexdigit())
        {
            self.at += 2;
            self.skip_while(|letter| letter.is_ascii_hexdigit());
            let digits = self.text(start + 2, self.at);
            return self.whole(&digits, 16);
        }
        self.skip_while(|letter| letter.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|letter| letter.is_ascii_digit()) {
            float = true;
            self.at += 1;
            self.skip_while(|letter| letter.is_ascii_digit());
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|letter| letter.is_ascii_digit()) {
                float = true;
                self.at += 1 + sign;
                self.skip_while(|letter| letter.is_ascii_digit());
            }
        }
        let digits = self.text(start, self.at);
        if float {
            return match digits.parse::<f64>() {
                Ok(number) if number.is_finite() => Token::Literal(Literal::Double(number)),
                _ => Token::Invalid("invalid double literal"),
            };
        }
        self.whole(&digits, 10)
    }

    fn whole(&mut self, digits: &str, radix: u32) -> Token {
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return u64::from_str_radix(digits, radix)
                .map_or(Token::Invalid("invalid uint literal"), |number| Token::Literal(Literal::Uint(number)));
        }
        match u64::from_str_radix(digits, radix) {
            Ok(number) => match i64::try_from(number) {
                Ok(number) => Token::Literal(Literal::Int(number)),
                // Only with a minus before it; the parser looks at the sign.
                Err(_) if number == 1 << 63 => Token::Invalid(SMALLEST_INT),
                Err(_) => Token::Invalid("invalid int literal"),
            },
            Err(_) => Token::Invalid("invalid int literal"),
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    /// Whether a string begins here, and how: bytes, raw, letters before the quote.
    fn string_prefix(&self) -> Option<Prefix> {
        let mut prefix = Prefix { bytes: false, raw: false, letters: 0 };
        if matches!(self.peek(0), Some('b' | 'B')) {
            prefix.bytes = true;
            prefix.letters = 1;
        }
        if matches!(self.peek(prefix.letters), Some('r' | 'R')) {
            prefix.raw = true;
            prefix.letters += 1;
        }
        matches!(self.peek(prefix.letters), Some('"' | '\'')).then_some(prefix)
    }

    fn string(&mut self, prefix: Prefix) -> Option<Token> {
        let quote = self.peek(prefix.letters)?;
        let triple = self.peek(prefix.letters + 1) == Some(quote) && self.peek(prefix.letters + 2) == Some(quote);
        self.at += prefix.letters + if triple { 3 } else { 1 };
        let mut text = Vec::new();
        loop {
            let letter = self.peek(0)?;
            if letter == quote && (!triple || (self.peek(1) == Some(quote) && self.peek(2) == Some(quote))) {
                self.at += if triple { 3 } else { 1 };
                break;
            }
            if !triple && matches!(letter, '\n' | '\r') {
                return None;
            }
            self.at += 1;
            if letter == '\\' && !prefix.raw {
                self.escape(prefix.bytes, &mut text)?;
            } else {
                push(&mut text, letter);
            }
        }
        if prefix.bytes {
            return Some(Token::Literal(Literal::Bytes(text)));
        }
        Some(
            String::from_utf8(text)
                .map_or(Token::Invalid("invalid string literal"), |text| Token::Literal(Literal::Text(text))),
        )
    }

    fn escape(&mut self, bytes: bool, text: &mut Vec<u8>) -> Option<()> {
        let letter = self.peek(0)?;
        let plain = match letter {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '?' | '"' | '\'' | '`' => letter,
            'x' | 'X' => return self.coded(1, 2, 16, bytes, text),
            'u' => return self.coded(1, 4, 16, false, text),
            'U' => return self.coded(1, 8, 16, false, text),
            '0'..='3' => return self.coded(0, 3, 8, bytes, text),
            _ => return None,
        };
        self.at += 1;
        push(text, plain);
        Some(())
    }

    fn coded(&mut self, skip: usize, digits: usize, radix: u32, byte: bool, text: &mut Vec<u8>) -> Option<()> {
        self.at += skip;
        let mut code = 0;
        for _ in 0..digits {
            code = code * radix + self.peek(0)?.to_digit(radix)?;
            self.at += 1;
        }
        if byte {
            text.push(u8::try_from(code).ok()?);
        } else {
            push(text, char::from_u32(code)?);
        }
        Some(())
    }
}

/// What the lexer says of 9223372036854775808, which is a number only behind a minus.
pub(super) const SMALLEST_INT: &str = "invalid int literal ";

#[derive(Clone, Copy)]
struct Prefix {
    bytes: bool,
    raw: bool,
    letters: usize,
}

fn push(text: &mut Vec<u8>, letter: char) {
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}
