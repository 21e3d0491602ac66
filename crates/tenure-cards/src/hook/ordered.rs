//! Comparing things that have an order with each other.
//!
//! The expression engine orders values of every type among each other without a word: a text is
//! greater than any number. A condition that does so is a mistake in it, or in what a variable came
//! to be, and must not decide anything. The engine has no place to say so, so each `a < b` is
//! written as a call of a filter that looks at both before it is compiled.

use super::sized::TIMES;
use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};

/// The filter that each comparison becomes.
const FILTER: &str = "_compared";

/// Teaches the evaluator what [`checked`] writes, and the named comparisons the same strictness.
pub(super) fn teach(environment: &mut Environment<'static>) {
    environment.add_filter(FILTER, compared);
    for (operator, names) in [
        ("<", ["lt", "lessthan", "<"]),
        ("<=", ["le", "le", "<="]),
        (">", ["gt", "greaterthan", ">"]),
        (">=", ["ge", "ge", ">="]),
    ] {
        for name in names {
            let test = move |left: Value, right: Value| -> Result<bool, Error> {
                holds(operator, &left, &right)
            };
            environment.add_test(name, test);
        }
    }
}

/// `left`, then an operator and what it compares with, as often as there are any.
fn compared(left: Value, others: Rest<Value>) -> Result<bool, Error> {
    let mut left = &left;
    for pair in others.chunks_exact(2) {
        let operator = pair[0].as_str().unwrap_or_default();
        if !holds(operator, left, &pair[1])? {
            return Ok(false);
        }
        left = &pair[1];
    }
    Ok(true)
}

fn holds(operator: &str, left: &Value, right: &Value) -> Result<bool, Error> {
    if left.is_undefined() || right.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "what it compares is not there"));
    }
    match operator {
        "==" => return Ok(left == right),
        "!=" => return Ok(left != right),
        _ => {}
    }
    let kinds = (left.kind(), right.kind());
    let is_ordered = matches!(kinds.0, ValueKind::Number | ValueKind::String | ValueKind::Bool);
    if !is_ordered || kinds.0 != kinds.1 {
        let message =
            format!("`{operator}` compares {} with {}", in_words(kinds.0), in_words(kinds.1));
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok(match operator {
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        _ => left >= right,
    })
}

fn in_words(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::None => "nothing (None)",
        ValueKind::Bool => "a truth value",
        ValueKind::Number => "a number",
        ValueKind::String | ValueKind::Bytes => "a text",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        _ => "an object",
    }
}

/// The expression, with each comparison by order, and each product, as a call of a filter. It is one that compiles.
/// The error says what has to be written otherwise.
pub(super) fn checked(expression: &str) -> Result<String, String> {
    let tokens = tokens(expression);
    let is_watched =
        |kind: Kind| matches!(kind, Kind::Compares { by_order: true } | Kind::Math("*"));
    if !tokens.iter().any(|token| is_watched(token.kind)) {
        return Ok(expression.to_owned());
    }
    let mut rewriting = Rewriting { text: expression, tokens: &tokens, at: 0 };
    let mut written = String::with_capacity(expression.len() * 2);
    while rewriting.at < tokens.len() {
        rewriting.group(&mut written)?;
    }
    Ok(written)
}

/// The expression with `/` for each `*` between two operands, which has the same form. The engine works out constants
/// when it compiles them, and nothing is made much of by dividing it.
pub(super) fn without_products(expression: &str) -> String {
    let mut bytes = expression.as_bytes().to_vec();
    let mut has_operand = false;
    for token in tokens(expression) {
        if token.kind == Kind::Math("*") && has_operand {
            bytes[token.start] = b'/';
        }
        has_operand = matches!(token.kind, Kind::Plain | Kind::Closes);
    }
    String::from_utf8(bytes).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Part of an operand.
    Plain,
    Compares {
        by_order: bool,
    },
    /// An operator between two numbers: it binds more tightly than comparisons.
    Math(&'static str),
    /// What an operand of a comparison does not reach over: `and`, a comma.
    Divides,
    Opens,
    Closes,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    // After these a word is a name, whatever it is called: `x.in`, `x is in [1]`, `x|not`.
    let mut names = false;
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let start = at;
        at += next.len_utf8();
        if next.is_whitespace() {
            continue;
        }
        let was_name = std::mem::take(&mut names);
        let kind = match next {
            '\'' | '"' => {
                at = end_of_text(text, at, next);
                Kind::Plain
            }
            '(' | '[' | '{' => Kind::Opens,
            ')' | ']' | '}' => Kind::Closes,
            '<' | '>' | '=' | '!' => {
                let is_double = text[at..].starts_with('=');
                at += usize::from(is_double);
                match next {
                    '<' | '>' => Kind::Compares { by_order: true },
                    _ if is_double => Kind::Compares { by_order: false },
                    _ => Kind::Divides,
                }
            }
            ',' | ':' => Kind::Divides,
            '+' => Kind::Math("+"),
            '-' => Kind::Math("-"),
            '~' => Kind::Math("~"),
            '%' => Kind::Math("%"),
            '*' | '/' => {
                let is_double = text[at..].starts_with(next);
                at += usize::from(is_double);
                match (next, is_double) {
                    ('*', false) => Kind::Math("*"),
                    // A power binds more tightly than what is looked at here.
                    ('*', true) => Kind::Math("**"),
                    _ => Kind::Math("/"),
                }
            }
            '.' | '|' => {
                names = true;
                Kind::Plain
            }
            _ if next.is_alphanumeric() || next == '_' => {
                let is_part = |it: char| it.is_alphanumeric() || it == '_';
                at += text[at..].find(|it| !is_part(it)).unwrap_or(text.len() - at);
                match &text[start..at] {
                    "not" if was_name => {
                        // `is not` and then the name of the test.
                        names = true;
                        Kind::Plain
                    }
                    _ if was_name => Kind::Plain,
                    "is" => {
                        names = true;
                        Kind::Plain
                    }
                    "in" => match found.last_mut() {
                        Some(last) if &text[last.start..last.end] == "not" => {
                            last.kind = Kind::Compares { by_order: false };
                            last.end = at;
                            continue;
                        }
                        _ => Kind::Compares { by_order: false },
                    },
                    "and" | "or" | "not" | "if" | "else" => Kind::Divides,
                    _ => Kind::Plain,
                }
            }
            _ => Kind::Plain,
        };
        found.push(Token { kind, start, end: at });
    }
    found
}

/// Where the text ends whose opening quote is right before `at`.
fn end_of_text(text: &str, at: usize, quote: char) -> usize {
    let mut is_escaped = false;
    for (place, next) in text[at..].char_indices() {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if next == quote => return at + place + 1,
            _ => {}
        }
    }
    text.len()
}

struct Rewriting<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
}

impl<'t> Rewriting<'t> {
    /// What is up to the bracket that closes this group, which is written too.
    fn group(&mut self, written: &mut String) -> Result<(), String> {
        let mut operands = vec![String::new()];
        let mut operators: Vec<(&'t str, bool)> = Vec::new();
        let mut term = Term::default();
        while let Some(token) = self.tokens.get(self.at).copied() {
            let text = &self.text[token.start..token.end];
            self.at += 1;
            match token.kind {
                Kind::Plain | Kind::Opens => {
                    let Some(operand) = operands.last_mut() else { continue };
                    let before = self.at.checked_sub(2).map(|at| self.tokens[at].end);
                    if before.is_some_and(|end| end < token.start) {
                        operand.push(' ');
                    }
                    operand.push_str(text);
                    if token.kind == Kind::Opens {
                        self.group(operand)?;
                    }
                    term.has_operand = true;
                }
                Kind::Math(operator) => {
                    let Some(operand) = operands.last_mut() else { continue };
                    term.goes_on(operand, operator, text);
                }
                Kind::Compares { by_order } => {
                    term.ends(operands.last_mut());
                    operators.push((text, by_order));
                    operands.push(String::new());
                }
                Kind::Divides | Kind::Closes => {
                    term.ends(operands.last_mut());
                    write(written, &operands, &operators)?;
                    operands = vec![String::new()];
                    operators.clear();
                    written.push(' ');
                    written.push_str(text);
                    if token.kind == Kind::Closes {
                        return Ok(());
                    }
                }
            }
        }
        term.ends(operands.last_mut());
        write(written, &operands, &operators)
    }
}

/// The product that is being written at the end of an operand.
#[derive(Default)]
struct Term {
    /// The place at which it begins.
    start: usize,
    /// Whether its last factor is the argument of a filter, which is still open.
    is_open: bool,
    /// Whether there is something on the left of the next operator.
    has_operand: bool,
}

impl Term {
    fn goes_on(&mut self, operand: &mut String, operator: &str, text: &str) {
        // A sign, or the star of an argument.
        if !std::mem::take(&mut self.has_operand) {
            operand.push_str(&format!(" {text}"));
            return;
        }
        if operator != "**" {
            self.close(operand);
        }
        if operator == "*" {
            operand.insert_str(self.start, " (");
            operand.push_str(&format!(")|{TIMES}("));
            self.is_open = true;
            return;
        }
        operand.push_str(&format!(" {text} "));
        if matches!(operator, "+" | "-" | "~") {
            self.start = operand.len();
        }
    }

    fn close(&mut self, operand: &mut String) {
        if std::mem::take(&mut self.is_open) {
            operand.push(')');
        }
    }

    /// The operand is complete, and another one begins.
    fn ends(&mut self, operand: Option<&mut String>) {
        if let Some(operand) = operand {
            self.close(operand);
        }
        *self = Self::default();
    }
}

fn write(
    written: &mut String,
    operands: &[String],
    operators: &[(&str, bool)],
) -> Result<(), String> {
    let (first, rest) = operands.split_first().map_or(("", &[][..]), |(it, rest)| (it, rest));
    let pairs = operators.iter().map(|(operator, _)| *operator).zip(rest);
    if !operators.iter().any(|(_, by_order)| *by_order) {
        written.push(' ');
        written.push_str(first.trim());
        for (operator, operand) in pairs {
            written.push_str(&format!(" {operator} {}", operand.trim()));
        }
        return Ok(());
    }
    if let Some((_, operand)) = pairs.clone().find(|(operator, _)| operator.ends_with("in")) {
        let operand = operand.trim();
        return Err(format!(
            "`in {operand}` stands in one chain with a comparison by order; put `and` between them"
        ));
    }
    let arguments: Vec<String> =
        pairs.map(|(operator, operand)| format!("'{operator}', {}", operand.trim())).collect();
    written.push_str(&format!(" ({})|{FILTER}({})", first.trim(), arguments.join(", ")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::when::Condition;
    use serde_json::{Value, json};

    fn value(expression: &str) -> Result<Value, String> {
        let condition = Condition::compile(expression)?;
        condition.value_where(|name| match name {
            "text" => Some("abc".into()),
            "digits" => Some("7".into()),
            "number" => Some(5.into()),
            "half" => Some(0.5.into()),
            "yes" => Some(true.into()),
            "nothing" => Some(Value::Null),
            "list" => Some(json!([1, 2, 3])),
            "map" => Some(json!({ "in": 1, "not": 2, "a": { "b": [4, 5] } })),
            _ => None,
        })
    }

    #[test]
    fn what_has_no_order_with_each_other_is_not_compared() {
        for (expression, expected) in [
            ("text > 3", "`>` compares a text with a number"),
            ("3 < text", "`<` compares a number with a text"),
            ("digits >= 3", "`>=` compares a text with a number"),
            ("yes < 'a'", "`<` compares a truth value with a text"),
            ("yes < 2", "`<` compares a truth value with a number"),
            ("nothing > 3", "`>` compares nothing (None) with a number"),
            ("nothing <= nothing", "`<=` compares nothing (None) with nothing (None)"),
            ("list < 3", "`<` compares a list with a number"),
            ("list < list", "`<` compares a list with a list"),
            ("map > 3", "`>` compares an object with a number"),
            ("1 < 2 < text", "`<` compares a number with a text"),
            ("1 == 1 < text", "`<` compares a number with a text"),
            ("(number + 1) * 2 < text", "`<` compares a number with a text"),
            ("not text < 3", "`<` compares a text with a number"),
            ("yes and text < 3", "`<` compares a text with a number"),
            ("1 if text < 3 else 2", "`<` compares a text with a number"),
            ("[1, text < 3]", "`<` compares a text with a number"),
            ("list[0 if text < 3 else 1]", "`<` compares a text with a number"),
            ("text|default(text < 3)", "`<` compares a text with a number"),
            ("dict(x=text < 3)", "`<` compares a text with a number"),
            ("{'a': text < 3}", "`<` compares a text with a number"),
            ("'<' < number", "`<` compares a text with a number"),
            ("'it\\'s < ' < number", "`<` compares a text with a number"),
            ("text is gt 3", "`>` compares a text with a number"),
            ("text is not lessthan(3)", "`<` compares a text with a number"),
            ("list|select('<', 'a')|list", "`<` compares a number with a text"),
            ("map.not < text", "`<` compares a number with a text"),
            ("map['gone'] < 3", "what it compares is not there"),
            ("gone > 3", "what it compares is not there"),
        ] {
            let error = value(expression).expect_err(expression);
            assert!(error.contains(expected), "{expression}: {error}");
        }
    }

    #[test]
    fn what_has_an_order_is_compared_as_ever() {
        for (expression, expected) in [
            ("number > 3", json!(true)),
            ("3 > number", json!(false)),
            ("half < number <= 5", json!(true)),
            ("half < number < 5", json!(false)),
            ("1 < 3 != 2", json!(true)),
            ("text < 'b'", json!(true)),
            ("yes > False", json!(true)),
            ("-number < 0", json!(true)),
            ("number - 1 < number * 2 + 1", json!(true)),
            ("list|length > 2 and list[1] < 3", json!(true)),
            ("not number < 3", json!(true)),
            ("not number < 3 and not number > 9", json!(true)),
            ("number < 3 or number in [5] and 1 < 2", json!(true)),
            ("number not in [1, 2] and number > 2", json!(true)),
            ("not number in [5]", json!(false)),
            ("yes or text < 3", json!(true)),
            ("'a' if number > 3 else 'b'", json!("a")),
            ("[number > 3, (1 < 2) == True]", json!([true, true])),
            ("{'a < b': number < 3, 'c': 1}", json!({ "a < b": false, "c": 1 })),
            ("'x < 3 and y' == \"x < 3 and y\" and 1 < 2", json!(true)),
            ("map.in < 2 and map.a.b[0] >= 4", json!(true)),
            ("list[0:1]|length < 2 and list|length > 2", json!(true)),
            ("number is defined and number < 9", json!(true)),
            ("number is not none and number < 9", json!(true)),
            ("number is in [5] and 1.5 < 2", json!(true)),
            ("number is gt 3", json!(true)),
            ("list|select('>=', 2)|list", json!([2, 3])),
            ("text ~ 'd' > 'abcc'", json!(true)),
            ("((((number)))) < ((9))", json!(true)),
            ("text == 3 or text != 3", json!(true)),
        ] {
            assert_eq!(value(expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn membership_in_a_chain_with_an_order_is_refused_with_what_to_write() {
        let error = Condition::compile("1 < number in list").expect_err("refused");
        assert!(error.contains("put `and` between them"), "{error}");
        assert!(Condition::compile("1 < number and number in list").is_ok());
    }

    #[test]
    fn an_expression_that_does_not_compile_is_reported_as_it_is_written() {
        for expression in ["a <", "a < b)", "(a < b", "< 3", "a < < b", "'a < b", "a < b]"] {
            let error = Condition::compile(expression).expect_err(expression);
            assert!(!error.contains("_compared"), "{expression}: {error}");
        }
    }
}
