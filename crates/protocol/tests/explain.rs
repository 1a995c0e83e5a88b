//! What an explanation says comes back as it went, within its bounds.

use tachonym_packet::DecodeError;
use tachonym_protocol::*;

fn pending() -> PendingInterest {
    PendingInterest {
        can_be_prefix: true,
        must_be_fresh: false,
        has_hint: false,
        is_satisfied: false,
        awaits_store: true,
        expires_in_ms: 300,
        waiting: vec![WaitingFace {
            face_id: 256,
            since_ms: 1,
            expires_in_ms: 2,
        }],
        asked: vec![AskedFace {
            face_id: 257,
            since_ms: 3,
            nack: Some(150),
        }],
    }
}

fn explanation() -> NameExplanation {
    NameExplanation {
        worker: 1,
        is_out_of_scope: false,
        is_for_local_faces: true,
        store_serves: true,
        cached: Some(CachedData {
            name: "/a".parse().unwrap(),
            n_bytes: 9,
            fresh_for_ms: 5,
            answers: true,
        }),
        on_ssd: SsdFinding::Probable,
        pending: vec![pending()],
        route_prefix: Some("/a".parse().unwrap()),
        next_hops: vec![ExplainedNextHop {
            face_id: 257,
            cost: 7,
            usage: NextHopUse::FaceDown,
            origin: Some(route_origin::STATIC),
        }],
        strategy: "/s".parse().unwrap(),
        strategy_prefix: "/".parse().unwrap(),
        faces: Vec::new(),
    }
}

/// Written by hand from the table of type numbers.
#[test]
fn golden_explanation() {
    let wire = [
        0xfd, 0x90, 0x96, 161, // NameExplanation
        0xfd, 0x90, 0x2c, 1, 1, // Worker
        0xfd, 0x90, 0x97, 1, 0, // IsOutOfScope
        0xfd, 0x90, 0x99, 1, 1, // IsForLocalFaces
        0xfd, 0x90, 0x9b, 1, 1, // StoreServes
        0xfd, 0x90, 0x9c, 20, // CachedData
        7, 3, 8, 1, b'a', // Name
        0xfd, 0x90, 0x19, 1, 9, // NBytes
        0xfd, 0x90, 0x9d, 1, 5, // FreshForMs
        0xfd, 0x90, 0x9f, 1, 1, // Answers
        0xfd, 0x90, 0xa1, 1, 3, // SsdFinding: probable
        0xfd, 0x90, 0xa2, 67, // PendingInterest
        0xfd, 0x90, 0x93, 1, 1, // CanBePrefix
        0xfd, 0x90, 0x95, 1, 0, // MustBeFresh
        0xfd, 0x90, 0xa3, 1, 0, // HasForwardingHint
        0xfd, 0x90, 0xa5, 1, 0, // IsSatisfied
        0xfd, 0x90, 0xa7, 1, 1, // AwaitsStore
        0xfd, 0x90, 0xa9, 2, 1, 0x2c, // ExpiresInMs
        0xfd, 0x90, 0xaa, 14, // WaitingFace
        0x69, 2, 1, 0, // FaceId
        0xfd, 0x90, 0xab, 1, 1, // SinceMs
        0xfd, 0x90, 0xa9, 1, 2, // ExpiresInMs
        0xfd, 0x90, 0xac, 14, // AskedFace
        0x69, 2, 1, 1, // FaceId
        0xfd, 0x90, 0xab, 1, 3, // SinceMs
        0xfd, 0x90, 0xae, 1, 150, // NackReason
        0xfd, 0x90, 0xb0, 5, 7, 3, 8, 1, b'a', // RoutePrefix
        0xfd, 0x90, 0xb2, 15, // ExplainedNextHop
        0x69, 2, 1, 1, // FaceId
        0x6a, 1, 7, // Cost
        0xfd, 0x90, 0xb3, 1, 2, // NextHopUse: face-down
        0x6f, 1, 255, // Origin
        0x6b, 5, 7, 3, 8, 1, b's', // Strategy
        0xfd, 0x90, 0xb5, 2, 7, 0, // StrategyPrefix
    ];
    assert_eq!(explanation().encode(), wire);
    assert_eq!(NameExplanation::decode(&wire), Ok(explanation()));
    for cut in 0..wire.len() {
        assert!(NameExplanation::decode(&wire[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_query_without_a_face_is_of_a_local_program() {
    let query = ExplainQuery {
        name: "/a".parse().unwrap(),
        can_be_prefix: true,
        must_be_fresh: false,
        face_id: None,
    };
    let wire = [
        0xfd, 0x90, 0x92, 15, // ExplainQuery
        7, 3, 8, 1, b'a', // Name
        0xfd, 0x90, 0x93, 1, 1, // CanBePrefix
        0xfd, 0x90, 0x95, 1, 0, // MustBeFresh
    ];
    assert_eq!(query.encode(), wire);
    assert_eq!(ExplainQuery::decode(&wire), Ok(query));
}

#[test]
fn more_records_or_next_hops_than_there_may_be_are_refused() {
    let mut full = explanation();
    let mut full_entry = pending();
    full_entry.waiting = vec![full_entry.waiting[0].clone(); WaitingFace::MAX];
    full_entry.asked = vec![full_entry.asked[0].clone(); AskedFace::MAX];
    full.pending = vec![full_entry.clone(); PendingInterest::MAX];
    full.next_hops = vec![full.next_hops[0].clone(); ExplainedNextHop::MAX];
    assert_eq!(NameExplanation::decode(&full.encode()), Ok(full.clone()));
    let mut one_more = [full.clone(), full.clone(), full.clone(), full];
    one_more[0].pending.push(pending());
    one_more[1].pending[0]
        .waiting
        .push(full_entry.waiting.remove(0));
    one_more[2].pending[0]
        .asked
        .push(full_entry.asked.remove(0));
    let hop = explanation().next_hops.remove(0);
    one_more[3].next_hops.push(hop);
    for (explanation, typ) in one_more.iter().zip([37026, 37034, 37036, 37042]) {
        let refused = NameExplanation::decode(&explanation.encode());
        assert_eq!(refused, Err(DecodeError::BadValue { typ }));
    }
}
