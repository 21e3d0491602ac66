//! The limits on expressions and templates that files bring along.
//!
//! The engine that reads them calls itself for each level of an expression, and so does whoever drops its tree: a few
//! kilobytes of signs would exhaust the stack. So a text is measured before the engine sees it. The measure is an upper
//! bound: each sign that no comma separates from the one before it may be one level deeper.

use std::fmt;

/// The longest expression, in bytes. Written with a filter for each comparison it is still shorter than a template.
pub const MAX_EXPRESSION: usize = 8 * 1024;
/// The longest template, in bytes: the engine counts lines and columns in 16 bits.
pub const MAX_TEMPLATE: usize = 60 * 1024;
/// The most words and signs on the way from the outermost part of an expression to the innermost.
pub const MAX_SIGNS: usize = 400;
/// The most bytes that products of constants may come to: the engine works them out when it reads them.
pub const MAX_CONSTANTS: usize = 16 * 1024 * 1024;
/// The most brackets that are open at the same time.
pub const MAX_BRACKETS: usize = 50;

/// An expression or a template that is not read because of its size or its nesting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooMuch {
    /// It has this many bytes; the second number is the most that is read.
    Bytes(usize, usize),
    /// Its brackets are nested more than [`MAX_BRACKETS`] deep.
    Brackets,
    /// It has more than [`MAX_SIGNS`] words and signs in a row.
    Signs,
    /// A text or a list may be repeated to more than [`MAX_CONSTANTS`] bytes.
    Constants,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(found, most) => {
                write!(f, "it is {found} bytes long, and at most {most} are read")
            }
            Self::Brackets => {
                write!(f, "its brackets are nested more than {MAX_BRACKETS} deep")
            }
            Self::Constants => {
                write!(f, "a text or a list in it is repeated to more than {MAX_CONSTANTS} bytes")
            }
            Self::Signs => {
                write!(f, "more than {MAX_SIGNS} words and signs follow each other without a comma")
            }
        }
    }
}

impl std::error::Error for TooMuch {}

/// Refuses an expression that could exhaust the stack of its reader.
pub fn check_expression(text: &str) -> Result<(), TooMuch> {
    sized(text, MAX_EXPRESSION)?;
    Rest::new(text).measure(Part::Expression)
}

/// Refuses an expression that its reader would make much of: `'x' * 100000000`. It goes by the numbers that are written,
/// and takes them all for factors.
pub fn check_constants(text: &str) -> Result<(), TooMuch> {
    let mut rest = Rest::new(text);
    rest.measure(Part::Expression)?;
    rest.bounded()
}

/// Refuses a template that could exhaust the stack of its reader, or that its reader would make much of.
pub fn check_template(text: &str) -> Result<(), TooMuch> {
    sized(text, MAX_TEMPLATE)?;
    let mut rest = Rest::new(text);
    while let Some(open) = rest.tail().find('{') {
        rest.at += open + 1;
        match rest.tail().bytes().next() {
            Some(b'{') => rest.measure(Part::Value)?,
            Some(b'%') => rest.measure(Part::Statement)?,
            Some(b'#') => rest.skip_past("#}"),
            _ => {}
        }
    }
    rest.bounded()
}

fn sized(text: &str, most: usize) -> Result<(), TooMuch> {
    match text.len() {
        found if found > most => Err(TooMuch::Bytes(found, most)),
        _ => Ok(()),
    }
}

/// The kind of code that is measured: it says where the code ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The whole text.
    Expression,
    /// `{{ ... }}`.
    Value,
    /// `{% ... %}`.
    Statement,
}

struct Rest<'t> {
    text: &'t str,
    at: usize,
    /// The most bytes that the products so far may come to.
    constants: usize,
}

/// What is known of the products of one part.
#[derive(Default)]
struct Products {
    has_times: bool,
    has_text: bool,
    factor: Option<usize>,
}

impl Products {
    fn note(&mut self, word: &str) {
        match word {
            "*" => self.has_times = true,
            "'" | "\"" | "[" | "(" => self.has_text = true,
            _ if word.starts_with(|found: char| found.is_ascii_digit()) => {
                let number: usize = word.replace('_', "").parse().unwrap_or(usize::MAX);
                self.factor = Some(self.factor.unwrap_or(1).saturating_mul(number.max(1)));
            }
            _ => {}
        }
    }

    fn bytes(&self, length: usize) -> usize {
        match self.has_times && self.has_text {
            true => self.factor.unwrap_or(1).saturating_mul(length),
            false => 0,
        }
    }
}

impl<'t> Rest<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0, constants: 0 }
    }

    fn bounded(&self) -> Result<(), TooMuch> {
        match self.constants {
            found if found > MAX_CONSTANTS => Err(TooMuch::Constants),
            _ => Ok(()),
        }
    }

    fn tail(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_past(&mut self, end: &str) {
        self.at += self.tail().find(end).map_or(self.tail().len(), |at| at + end.len());
    }

    /// Goes to the end of this part.
    fn measure(&mut self, part: Part) -> Result<(), TooMuch> {
        // The signs since the last comma, for each bracket that is open.
        let mut open: Vec<usize> = vec![0];
        let mut signs = 0;
        if part != Part::Expression {
            self.at += 1;
        }
        let start = self.at;
        let mut products = Products::default();
        while let Some(next) = self.tail().chars().next() {
            let is_end = match part {
                Part::Expression => false,
                Part::Value => self.tail().starts_with("}}"),
                Part::Statement => self.tail().starts_with("%}"),
            };
            if is_end && open.len() == 1 {
                break;
            }
            let from = self.at;
            self.at += next.len_utf8();
            let is_closable = open.len() > 1;
            let last = open.last_mut();
            match next {
                _ if next.is_whitespace() => continue,
                ',' => {
                    if let Some(last) = last {
                        signs -= std::mem::take(last);
                    }
                }
                ')' | ']' | '}' if is_closable => {
                    signs -= open.pop().unwrap_or_default();
                    // A chain of calls, `a()()()`, nests as well.
                    signs += 1;
                    open.last_mut().into_iter().for_each(|last| *last += 1);
                }
                _ => {
                    signs += 1;
                    match next {
                        '(' | '[' | '{' => open.push(1),
                        _ => last.into_iter().for_each(|last| *last += 1),
                    }
                    match next {
                        '\'' | '"' => {
                            products.note(&self.text[from..self.at]);
                            self.skip_text(next);
                        }
                        _ if is_word(next) => {
                            let length = self.tail().find(|found| !is_word(found));
                            self.at += length.unwrap_or(self.tail().len());
                        }
                        _ => {}
                    }
                    if !matches!(next, '\'' | '"') {
                        products.note(&self.text[from..self.at]);
                    }
                }
            }
            if open.len() > MAX_BRACKETS + 1 {
                return Err(TooMuch::Brackets);
            }
            if signs > MAX_SIGNS {
                return Err(TooMuch::Signs);
            }
        }
        self.constants = self.constants.saturating_add(products.bytes(self.at - start));
        self.at = (self.at + 2).min(self.text.len());
        Ok(())
    }

    /// Goes behind a text whose opening quote is right before this.
    fn skip_text(&mut self, quote: char) {
        let mut is_escaped = false;
        let tail = self.tail();
        for (at, found) in tail.char_indices() {
            match found {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                _ if found == quote => {
                    self.at += at + 1;
                    return;
                }
                _ => {}
            }
        }
        self.at = self.text.len();
    }
}

fn is_word(found: char) -> bool {
    found.is_alphanumeric() || found == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read_and_what_nests_is_refused() {
        let names = format!("tool.name in [{}]", "'a_name', ".repeat(500));
        let clauses = format!("a == 1{}", " or b.c == 'x, y'".repeat(50));
        for fine in
            [names.as_str(), &clauses, "a", "", "not (a and (b or c)) and f(x)|g", "'((((('"]
        {
            assert_eq!(check_expression(fine), Ok(()), "{fine:.40}");
        }
        for (text, expected) in [
            ("(".repeat(60), TooMuch::Brackets),
            ("[".repeat(60), TooMuch::Brackets),
            ("-".repeat(500), TooMuch::Signs),
            ("not ".repeat(500), TooMuch::Signs),
            (format!("a{}", "+a".repeat(300)), TooMuch::Signs),
            (format!("a{}", "()".repeat(500)), TooMuch::Signs),
            (format!("a{}", "[0]".repeat(500)), TooMuch::Signs),
            (format!("a{}", "|b".repeat(300)), TooMuch::Signs),
            (format!("f(1, {})", "-".repeat(500)), TooMuch::Signs),
            ("a,".repeat(10_000), TooMuch::Bytes(20_000, MAX_EXPRESSION)),
        ] {
            assert_eq!(check_expression(&text), Err(expected), "{text:.40}");
        }
    }

    #[test]
    fn what_its_reader_would_make_much_of_is_refused() {
        for fine in
            ["a * 1000000000", "a.b * 3 > 100 and c == 'x'", "'100000000'", "n * 2 * 3 == 9"]
        {
            assert_eq!(check_constants(fine), Ok(()), "{fine}");
        }
        for much in [
            "'x' * 100000000",
            "[1] * 100000000",
            "1000 * 1000 * 1000 * ('x')",
            "10 ** 9 * 'x' * 1000000",
        ] {
            assert_eq!(check_constants(much), Err(TooMuch::Constants), "{much}");
            assert_eq!(check_template(&format!("a {{{{ {much} }}}}")), Err(TooMuch::Constants));
        }
        let many = "{{ 'x' * 1000000 }}".repeat(1000);
        assert_eq!(check_template(&many), Err(TooMuch::Constants));
        assert_eq!(check_template("* 2026\n* 'x' 1000000000 {{ a * 2 }} {{ 'b' }}"), Ok(()));
    }

    #[test]
    fn of_a_template_only_the_code_is_measured() {
        let prose = "word ( [ { ".repeat(1000);
        for fine in [prose.clone(), format!("{{{{ a['b'] }}}} {prose} {{# {prose} #}}")] {
            assert_eq!(check_template(&fine), Ok(()));
        }
        let deep = "-".repeat(500);
        for hostile in [
            format!("{prose}{{{{ {deep}1 }}}}"),
            format!("{{% if {deep}1 %}}{{% endif %}}"),
            // What looks like the end is inside of a mapping, or of a text.
            format!("{{{{ {{'a': {{}}}} + {deep}1 }}}}"),
            format!("{{{{ '}}}}' + {deep}1 }}}}"),
        ] {
            assert_eq!(check_template(&hostile), Err(TooMuch::Signs), "{hostile:.60}");
        }
        let long = "a".repeat(MAX_TEMPLATE + 1);
        assert!(matches!(check_template(&long), Err(TooMuch::Bytes(..))));
    }
}
