//! The word list: phrases that the project's texts do not use.
//!
//! Owns [`REFUSED`], the phrases, and [`PLAIN`], the paths whose comments are checked too.
//! Documents are checked whole. Of Rust sources the string literals are checked, because log
//! lines, errors and output are written there; comments only under the paths of [`PLAIN`].

use std::path::Path;
use std::str::FromStr as _;

use anyhow::{Context as _, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Phrases and what to write instead. A phrase also matches across a line break.
const REFUSED: &[(&str, &str)] = &[
    ("whoever", "name the peer, program or user"),
    ("somebody", "a peer, a program, a user"),
    ("nobody", "no peer, no program"),
    ("anybody", "any peer, any program"),
    ("stranger", "an unauthenticated peer, a remote peer"),
    ("strangers", "unauthenticated peers, remote peers"),
    ("anew", "again"),
    ("so many", "give the number a name"),
    ("so much as", "give the amount a name"),
    ("to be had", "available, exists"),
    ("in vain", "without an answer, without effect"),
    ("is told", "receives, is notified of"),
    ("are told", "receive, are notified of"),
    ("has heard", "has received"),
    ("what there is", "name the thing"),
    ("as if he", "as if it"),
    ("see the module", "a doc comment stands alone"),
    ("give way", "are evicted, are replaced"),
    ("gives way", "is evicted, is replaced"),
    ("gave way", "was evicted, was replaced"),
];

/// Files and folders whose comments are checked as well as their strings. The list only grows.
const PLAIN: &[&str] = &[
    "crates/bench/",
    "crates/client/",
    "crates/forward/",
    "crates/loadgen/",
    "crates/manage/",
    "crates/packet/",
    "crates/protocol/",
    "crates/router/src/config/",
    "crates/router/src/packet_trace/",
    "crates/router/src/tools/",
    "crates/sim/",
    "interop/",
    "xtask/",
];

/// The file that holds the list, and so every phrase of it.
const THE_LIST: &str = "xtask/src/words.rs";

/// Whether the strings of the Rust file `name`, relative to the root, are checked: tests may
/// send what they like.
fn has_checked_strings(name: &str) -> bool {
    name != THE_LIST
        && Path::new(name)
            .components()
            .any(|part| part.as_os_str() == "src")
}

/// Refused phrases in a document.
pub(crate) fn document_violations(text: &str) -> Vec<String> {
    let mut words = Words::default();
    words.add_lines(text, 1);
    words.violations()
}

/// Refused phrases in the Rust file `name`, a path relative to the root.
///
/// # Errors
///
/// If the file cannot be read as Rust.
pub(crate) fn source_violations(name: &str, text: &str) -> anyhow::Result<Vec<String>> {
    if !has_checked_strings(name) {
        return Ok(Vec::new());
    }
    if PLAIN.iter().any(|path| name.starts_with(path)) {
        return Ok(document_violations(text));
    }
    let tokens = TokenStream::from_str(text).map_err(|error| anyhow!("{error}"));
    let mut violations = Vec::new();
    collect_strings(tokens.context("read as Rust")?, &mut |literal, line| {
        let mut words = Words::default();
        words.add_lines(literal, line);
        violations.extend(words.violations());
    });
    Ok(violations)
}

/// Calls `found` with each string literal and its first line, but not with doc comments.
fn collect_strings(tokens: TokenStream, found: &mut impl FnMut(&str, usize)) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_doc_comment(&group) => {}
            TokenTree::Group(group) => collect_strings(group.stream(), found),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.ends_with(['"', '#']) {
                    found(&text, literal.span().start().line);
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Whether a group is the `[doc = "…"]` that a doc comment reads as.
fn is_doc_comment(group: &proc_macro2::Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(word)) if word == "doc")
}

/// The words of a text in their order.
#[derive(Default)]
struct Words(Vec<Word>);

/// A word of a text.
struct Word {
    /// In lower case; empty for an end of a phrase, such as a full stop.
    text: String,
    line: usize,
    /// Whether it stands alone in quotes or backticks, as the name of something.
    is_quoted: bool,
}

impl Words {
    /// Adds the words of `text`, whose first line is number `line`.
    fn add_lines(&mut self, text: &str, line: usize) {
        for (i, text) in text.lines().enumerate() {
            // The marks of comments, quotations and lists do not divide a phrase.
            let text = text
                .trim_start()
                .trim_start_matches(['/', '!', '>', '*', '-']);
            self.add(text, line + i);
        }
    }

    fn add(&mut self, text: &str, line: usize) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut before = ' ';
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if is_part(c) {
                let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                let (word, tail) = rest.split_at(len);
                let after = tail.chars().next().unwrap_or(' ');
                self.0.push(Word {
                    text: word.to_lowercase(),
                    line,
                    is_quoted: before == after && matches!(before, '`' | '\'' | '"'),
                });
                before = word.chars().next_back().unwrap_or(' ');
                rest = tail;
            } else {
                if c == '\\' {
                    // An escape such as `\n` divides words and belongs to none.
                    rest = rest.get(1..).unwrap_or_default();
                    before = ' ';
                    rest = rest
                        .strip_prefix(|c: char| !c.is_whitespace())
                        .unwrap_or(rest);
                    continue;
                }
                if !c.is_whitespace() {
                    self.0.push(Word {
                        text: String::new(),
                        line,
                        is_quoted: false,
                    });
                }
                before = c;
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    /// Every refused phrase among the words.
    fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (phrase, instead) in REFUSED {
            let phrase_words: Vec<_> = phrase.split(' ').collect();
            for words in self.0.windows(phrase_words.len()) {
                let is_same = words
                    .iter()
                    .map(|word| &*word.text)
                    .eq(phrase_words.iter().copied());
                if is_same && !(words.len() == 1 && words[0].is_quoted) {
                    found.push(format!("line {}: \"{phrase}\": {instead}", words[0].line));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_phrase_is_found_with_its_line_and_a_better_one() {
        let found = document_violations("A table.\n\nNobody answers.\n");
        assert_eq!(found, ["line 3: \"nobody\": no peer, no program"]);
        assert!(document_violations("No program answers.").is_empty());
    }

    #[test]
    fn phrase_is_found_across_lines_and_not_across_sentences() {
        assert_eq!(
            document_violations("/// after so\n/// many of them").len(),
            1
        );
        assert!(document_violations("It is so. Many agree.").is_empty());
    }

    #[test]
    fn word_in_quotes_is_a_name() {
        assert!(document_violations("run it as the user `nobody`").is_empty());
        assert!(document_violations("nobody_answers is a function").is_empty());
    }

    #[test]
    fn strings_of_sources_are_checked_and_comments_of_plain_paths() {
        let text = "//! Asks somebody.\n/// Is told.\nfn f() { g(\"asked\\\n  in vain\", b'x') }\n";
        let found = |name| source_violations(name, text).expect("it is Rust");
        let in_string = ["line 4: \"in vain\": without an answer, without effect"];
        assert_eq!(found("crates/face/src/lib.rs"), in_string);
        assert_eq!(found("crates/router/src/config/mod.rs").len(), 3);
        assert!(found("crates/face/tests/udp.rs").is_empty());
    }
}
