//! Interests written from others: what a forwarder changes of one, and one of several that ask
//! for the same.

use super::{FIELDS, InterestView, Nonce};
use crate::tlv::{self, Reader};
use crate::types;

/// What a forwarder changes of an Interest before it sends it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterestRewrite {
    /// HopLimit to write; added if the Interest has none.
    pub hop_limit: Option<u8>,
    /// Nonce to write; added if the Interest has none.
    pub nonce: Option<Nonce>,
    /// Whether to leave the forwarding hint out.
    pub strip_forwarding_hint: bool,
}

impl InterestRewrite {
    /// Appends the changed Interest to `out`. Where no length changes, it is one
    /// copy with bytes patched in place.
    pub fn write_into(&self, interest: &InterestView<'_>, out: &mut Vec<u8>) {
        let adds_nonce = self.nonce.is_some() && interest.nonce_at == 0;
        let adds_hop_limit = self.hop_limit.is_some() && interest.hop_limit_at == 0;
        let strips = self.strip_forwarding_hint && interest.has_forwarding_hint();
        if adds_nonce || adds_hop_limit || strips {
            self.rebuild(interest, out);
            return;
        }
        let start = out.len();
        out.extend_from_slice(interest.wire);
        if let Some(hop_limit) = self.hop_limit {
            out[start + usize::from(interest.hop_limit_at)] = hop_limit;
        }
        if let Some(nonce) = self.nonce {
            let at = start + usize::from(interest.nonce_at);
            out[at..at + 4].copy_from_slice(&nonce.0);
        }
    }

    /// Writes the Interest element by element; unrecognised elements keep their place.
    fn rebuild(&self, interest: &InterestView<'_>, out: &mut Vec<u8>) {
        let value = tlv::read_single(interest.wire, types::INTEREST).unwrap_or_default();
        tlv::write_nested(out, types::INTEREST, |out| {
            let mut reader = Reader::new(value);
            let (mut nonce, mut hop_limit) = (self.nonce, self.hop_limit);
            while let Ok(element) = reader.read_element() {
                // What is not recognised has none, so that it never pulls an
                // added element before its place.
                let rank = FIELDS.rank(element.typ);
                if rank > FIELDS.rank(types::NONCE) {
                    write_nonce(out, nonce.take());
                }
                if rank > FIELDS.rank(types::HOP_LIMIT) {
                    write_hop_limit(out, hop_limit.take());
                }
                match element.typ {
                    types::FORWARDING_HINT if self.strip_forwarding_hint => {}
                    types::NONCE if nonce.is_some() => write_nonce(out, nonce.take()),
                    types::HOP_LIMIT if hop_limit.is_some() => {
                        write_hop_limit(out, hop_limit.take());
                    }
                    _ => tlv::write_tlv(out, element.typ, element.value),
                }
            }
            write_nonce(out, nonce);
            write_hop_limit(out, hop_limit);
        });
    }
}

/// What may differ between Interests that ask for the same, and share a pending entry: to write
/// one where another one was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterestVariant {
    /// The nonce.
    pub nonce: Option<Nonce>,
    /// The lifetime that it states, in milliseconds.
    pub lifetime_ms: Option<u64>,
    /// The hop limit that it states.
    pub hop_limit: Option<u8>,
}

impl InterestVariant {
    /// Appends `interest` to `out`, with these in the place of its own: unchanged if they are its
    /// own, and else without elements that are not recognised, which may be its alone. Those
    /// from the parameters on stay.
    pub fn write_into(&self, interest: &InterestView<'_>, out: &mut Vec<u8>) {
        if *self == interest.variant() {
            out.extend_from_slice(interest.wire);
            return;
        }
        let value = tlv::read_single(interest.wire, types::INTEREST).unwrap_or_default();
        tlv::write_nested(out, types::INTEREST, |out| {
            let mut reader = Reader::new(value);
            while let Ok(element) = reader.read_element() {
                if matches!(
                    element.typ,
                    types::NAME
                        | types::CAN_BE_PREFIX
                        | types::MUST_BE_FRESH
                        | types::FORWARDING_HINT
                ) {
                    tlv::write_tlv(out, element.typ, element.value);
                }
            }
            write_nonce(out, self.nonce);
            if let Some(lifetime_ms) = self.lifetime_ms {
                tlv::write_nni(out, types::INTEREST_LIFETIME, lifetime_ms);
            }
            write_hop_limit(out, self.hop_limit);
            out.extend_from_slice(interest.parameters_bytes());
        });
    }
}

pub(super) fn write_nonce(out: &mut Vec<u8>, nonce: Option<Nonce>) {
    if let Some(nonce) = nonce {
        tlv::write_tlv(out, types::NONCE, &nonce.0);
    }
}

pub(super) fn write_hop_limit(out: &mut Vec<u8>, hop_limit: Option<u8>) {
    if let Some(hop_limit) = hop_limit {
        tlv::write_tlv(out, types::HOP_LIMIT, &[hop_limit]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interest;
    use crate::interest::tests::{full, name};

    #[test]
    fn hop_limit_and_nonce_are_patched_in_place() {
        let wire = full().encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        let rewrite = InterestRewrite {
            hop_limit: Some(8),
            nonce: Some(Nonce([9; 4])),
            strip_forwarding_hint: false,
        };
        let mut out = vec![0xff];
        rewrite.write_into(&view, &mut out);
        let changed = InterestView::parse(&out[1..]).expect("still an Interest");
        assert_eq!(
            changed.to_interest(),
            Interest {
                hop_limit: Some(8),
                nonce: Some(Nonce([9; 4])),
                ..full()
            }
        );
        assert_eq!(out.len(), 1 + wire.len());
    }

    #[test]
    fn a_missing_nonce_is_added_and_the_hint_stripped() {
        let interest = Interest {
            nonce: None,
            hop_limit: None,
            ..full()
        };
        let wire = interest.encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        let rewrite = InterestRewrite {
            hop_limit: Some(4),
            nonce: Some(Nonce([7; 4])),
            strip_forwarding_hint: true,
        };
        let mut out = Vec::new();
        rewrite.write_into(&view, &mut out);
        let expected = Interest {
            nonce: Some(Nonce([7; 4])),
            hop_limit: Some(4),
            forwarding_hint: Vec::new(),
            ..full()
        };
        assert_eq!(out, expected.encode());
    }

    #[test]
    fn a_missing_nonce_is_added_where_parameters_follow() {
        let mut interest = Interest::new(name("/p"));
        interest.application_parameters = Some(vec![1, 2, 3]);
        let wire = interest.encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        let mut out = Vec::new();
        let rewrite = InterestRewrite {
            nonce: Some(Nonce([7; 4])),
            ..InterestRewrite::default()
        };
        rewrite.write_into(&view, &mut out);
        let changed = InterestView::parse(&out).expect("still an Interest");
        assert_eq!(changed.nonce(), Some(Nonce([7; 4])));
        assert!(changed.verify_parameters_digest());
    }
}
