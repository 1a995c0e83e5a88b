//! Time to check one received packet: `cargo bench -p tachonym-packet`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tachonym_packet::lp::{Headers, LpView, write_packet};
use tachonym_packet::{
    Data, DataView, Interest, InterestRewrite, InterestView, KeyLocator, Name, Nonce, PitToken,
    SignatureInfo, types,
};

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn interest() -> Vec<u8> {
    Interest {
        must_be_fresh: true,
        nonce: Some(Nonce([1, 2, 3, 4])),
        hop_limit: Some(64),
        ..Interest::new(name("/example/site/file/v=1/seg=7"))
    }
    .encode()
}

fn data(info: &SignatureInfo, signature_bytes: usize) -> Vec<u8> {
    let data = Data {
        content: vec![7; 1000],
        freshness_period_ms: Some(1000),
        ..Data::new(name("/example/site/file/v=1/seg=7"))
    };
    data.encode_signed(info, |_| Ok::<_, ()>(vec![9; signature_bytes]))
        .expect("signing cannot fail")
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("packet");
    group.throughput(Throughput::Elements(1));

    let interest = interest();
    group.bench_function("interest_parse/components=5", |b| {
        b.iter(|| {
            InterestView::parse(black_box(&interest))
                .expect("valid")
                .hop_limit()
        });
    });
    let digest = data(&SignatureInfo::digest(), 32);
    group.bench_function("data_parse/components=5,signature=digest", |b| {
        b.iter(|| {
            DataView::parse(black_box(&digest))
                .expect("valid")
                .content()
                .len()
        });
    });
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(name("/example/site/KEY/%01%02/self/v=1"))),
        ..SignatureInfo::new(types::signature_type::SHA256_WITH_ECDSA)
    };
    let ecdsa = data(&info, 71);
    group.bench_function("data_parse/components=5,signature=ecdsa", |b| {
        b.iter(|| {
            DataView::parse(black_box(&ecdsa))
                .expect("valid")
                .content()
                .len()
        });
    });

    let view = InterestView::parse(&interest).expect("valid");
    let rewrite = InterestRewrite {
        hop_limit: Some(63),
        nonce: Some(Nonce([4, 3, 2, 1])),
        ..InterestRewrite::default()
    };
    let mut out = Vec::new();
    group.bench_function("interest_rewrite/change=hop_limit+nonce", |b| {
        b.iter(|| {
            out.clear();
            rewrite.write_into(black_box(&view), &mut out);
            out.len()
        });
    });

    let headers = Headers {
        pit_token: PitToken::new(&[5; 8]),
        ..Headers::default()
    };
    let mut framed = Vec::new();
    write_packet(&mut framed, &headers, None, &[], Some(&digest));
    for (state, wire) in [("bare", &digest), ("pit_token", &framed)] {
        group.bench_function(format!("lp_parse/header={state}"), |b| {
            b.iter(|| {
                let view = LpView::parse(black_box(wire)).expect("valid");
                (
                    view.fragment().map(<[u8]>::len),
                    view.headers().congestion_mark,
                )
            });
        });
    }
    group.finish();
}

criterion_group!(parse, benches);
criterion_main!(parse);
