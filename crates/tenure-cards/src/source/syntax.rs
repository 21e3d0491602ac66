//! What the YAML reader's errors mean to the person who wrote the file.

use granit_parser::ErrorKind;

use crate::diagnostic::Code;

/// Whether the reader met a tab where only spaces may stand.
pub(super) fn is_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
            | ErrorKind::InvalidBlockEntryWhitespace
            | ErrorKind::InvalidMappingValueWhitespace
    )
}

/// Code, message and remedy of a reader's error.
pub(super) fn explain(kind: &ErrorKind) -> (Code, String, Option<&'static str>) {
    const COLON: &str = "put quotes around a value that contains `: `";
    const CLOSE: &str =
        "add the closing bracket, or put quotes around text that starts with `[` or `{`";
    const QUOTE: &str =
        "close the quotes on the same value; a quote inside single quotes is doubled";
    const SPACES: &str = "indent with spaces";
    const INDENT: &str =
        "line up the fields of one mapping, and the items of one list, in one column";
    const ESCAPE: &str = "double a backslash in double quotes, or use single quotes";
    const TAG: &str = "put quotes around text that starts with `!`";
    let (message, help) = match kind {
        ErrorKind::UnknownAnchor => {
            return (
                Code::UnknownAnchor,
                "this alias names an anchor that is not defined before it".into(),
                Some(
                    "define it above with `&name`, or put quotes around text that starts with `*`",
                ),
            );
        }
        ErrorKind::RecursionLimitExceeded => {
            return (
                Code::TooDeep,
                format!("lists and mappings are nested more than {} deep", super::MAX_DEPTH),
                Some("flatten it"),
            );
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            ("a `:` stands where no value can begin".into(), Some(COLON))
        }
        ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator => {
            ("a list or mapping in brackets does not end, or lacks a comma".into(), Some(CLOSE))
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            (format!("the `{open}` is never closed"), Some(CLOSE))
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            (format!("`{open}` is closed by `{close}`"), Some(CLOSE))
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            ("a closing bracket has no opening one".into(), Some(CLOSE))
        }
        ErrorKind::UnclosedQuotedScalar => ("quoted text is never closed".into(), Some(QUOTE)),
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            ("something follows the closing quote".into(), Some(QUOTE))
        }
        tab if is_tab(tab) => ("a tab stands where YAML allows only spaces".into(), Some(SPACES)),
        ErrorKind::InvalidIndentation
        | ErrorKind::InvalidBlockScalarIndent
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::InvalidFlowScalarIndent
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::MappingKeyNotAllowed => {
            ("the indentation does not fit what is around it".into(), Some(INDENT))
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "this line is no `key: value`".into(),
            Some("write `key: value`, or indent it to continue the value above"),
        ),
        ErrorKind::UnexpectedCharacter { character } => (
            format!("a value cannot begin with `{}`", character.escape_default()),
            Some("put the value in quotes"),
        ),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => {
            ("this escape in double quotes is unknown or incomplete".into(), Some(ESCAPE))
        }
        ErrorKind::UndeclaredTagHandle
        | ErrorKind::ExpectedTagBang
        | ErrorKind::InvalidTagTerminator
        | ErrorKind::InvalidGlobalTagCharacter
        | ErrorKind::MissingTagUri
        | ErrorKind::UnclosedVerbatimTag
        | ErrorKind::InvalidTagEscape => ("this tag is not valid".into(), Some(TAG)),
        ErrorKind::DirectiveDisallowed => (
            "a line that begins with `%` is a YAML directive, which cards do not use".into(),
            Some("remove the line"),
        ),
        ErrorKind::MissingAnchorOrAliasName => (
            "`*` or `&` is not followed by a name".into(),
            Some("put quotes around text that starts with `*` or `&`"),
        ),
        ErrorKind::InvalidBlockScalarHeader | ErrorKind::ZeroBlockScalarIndent => (
            "the line that opens a block of text with `|` or `>` holds something else".into(),
            Some("begin the text on the next line, indented"),
        ),
        ErrorKind::CommentInterceptedScalar | ErrorKind::CommentNotSeparated => (
            "a comment stands where the text goes on".into(),
            Some("put a space before `#`, and quotes around text that contains ` #`"),
        ),
        ErrorKind::BomInsideDocument => {
            ("a byte order mark stands within the text".into(), Some("remove it"))
        }
        ErrorKind::BlockEntryInFlowCollection
        | ErrorKind::PlainScalarStartsWithDashFlowIndicator => (
            "a `-` item stands inside brackets".into(),
            Some("inside `[ ]` separate the items by commas"),
        ),
        ErrorKind::InvalidDocumentEnd
        | ErrorKind::ExpectedDocumentStart
        | ErrorKind::MissingDocumentEndBeforeDirective => {
            ("something follows the end of the document".into(), Some(INDENT))
        }
        _ => ("this is not valid YAML".into(), Some("put the value in quotes if it is text")),
    };
    (Code::YamlSyntax, message, help)
}
