//! PIT tokens that bring Data and Nacks home (NDNLPv2, "PIT Token").
//!
//! An Interest that leaves carries the worker that has it pending. Whoever receives the answer
//! takes it there by the token that comes back, and neither looks at its name nor hashes it.
//! Answers without a token go by their names, and so do those whose token is of former homes,
//! or is none of ours.
//!
//! A token leads only where the name leads too: Interests for which Data may be at home
//! elsewhere have none. A neighbour that answers with another one's token, or with a Data that
//! was not asked for, misleads nobody but itself: what comes to a worker that does not wait for
//! it is unsolicited there.

use tachonym_dispatch::{NameShape, WorkerId};
use tachonym_packet::{InterestView, PitToken};

/// Bytes of a token: tag, version of the homes, worker.
const TOKEN_BYTES: usize = 10;

/// Makes and reads tokens of one router, for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Drawn at start: tells own tokens from those of an earlier start.
    tag: u32,
}

impl Tokens {
    /// Tokens with a random tag.
    #[must_use]
    pub const fn new(tag: u32) -> Self {
        Self { tag }
    }

    /// Leads to a worker for as long as homes are those of this version.
    pub(crate) fn token(self, worker: WorkerId, version: u64) -> Option<PitToken> {
        let mut bytes = [0; TOKEN_BYTES];
        bytes[..4].copy_from_slice(&self.tag.to_be_bytes());
        bytes[4..8].copy_from_slice(&(version as u32).to_be_bytes());
        bytes[8..].copy_from_slice(&worker.0.to_be_bytes());
        PitToken::new(&bytes)
    }

    /// Where a token leads while homes are those of this version.
    pub(crate) fn worker(self, token: &PitToken, version: u64) -> Option<WorkerId> {
        let bytes: &[u8; TOKEN_BYTES] = token.as_bytes().try_into().ok()?;
        let (head, worker) = bytes.split_at(8);
        let mut ours = [0; 8];
        ours[..4].copy_from_slice(&self.tag.to_be_bytes());
        ours[4..].copy_from_slice(&(version as u32).to_be_bytes());
        (head == ours).then(|| WorkerId(u16::from_be_bytes([worker[0], worker[1]])))
    }
}

/// Makes the tokens of one worker, for a burst.
#[derive(Clone, Copy, Debug)]
pub struct TokenMaker {
    pub(crate) token: PitToken,
    pub(crate) n_deciding: usize,
}

impl TokenMaker {
    /// What an Interest that leaves carries, to have its answer brought to the worker; nothing
    /// if that may be at home elsewhere.
    #[inline]
    #[must_use]
    pub fn token(&self, interest: &InterestView<'_>) -> Option<PitToken> {
        let decides = !interest.can_be_prefix()
            || NameShape::of(interest.name()).n_components >= self.n_deciding;
        decides.then_some(self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_its_worker_and_no_other_token_anywhere() {
        let tokens = Tokens::new(7);
        let token = tokens.token(WorkerId(3), 5).expect("short enough");
        assert_eq!(tokens.worker(&token, 5), Some(WorkerId(3)));
        assert_eq!(tokens.worker(&token, 6), None);
        assert_eq!(Tokens::new(8).worker(&token, 5), None);
        for bytes in [&token.as_bytes()[..9], &[0; 10], &[1; 32]] {
            let other = PitToken::new(bytes).expect("short enough");
            assert_eq!(tokens.worker(&other, 5), None);
        }
    }
}
