//! Which characters may be printed when a peer chose them.

/// Whether a character could change what a terminal shows beside it: a control character, or
/// one that reverses the direction of the text after it.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidirectional_characters_are_unprintable() {
        for c in ['\0', '\n', '\x1b', '\x7f', '\u{9b}'] {
            assert!(is_unprintable(c), "{c:?}");
        }
        for c in ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'] {
            assert!(is_unprintable(c), "{c:?}");
        }
        for c in [' ', 'a', 'ü', '\u{5d0}', '\u{2029}', '\u{202f}', '\u{206a}'] {
            assert!(!is_unprintable(c), "{c:?}");
        }
    }
}
