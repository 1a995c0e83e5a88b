//! Interests with parameters, as a producer gets to see them.

mod scripted;

use std::ops::ControlFlow;

use scripted::{Reply, endpoint};
use tachonym_client::Received;
use tachonym_packet::{Interest, Name};

#[test]
fn interest_whose_parameters_are_not_those_of_its_name_is_not_handed_out() {
    let name = |uri: &str| -> Name { uri.parse().expect("a literal name") };
    let mut asked = Interest::new(name("/p"));
    asked.application_parameters = Some(b"parameters".to_vec());
    let good = asked.encode();
    let mut bad = good.clone();
    *bad.last_mut().expect("not empty") ^= 1;
    let frames = vec![bad, good.clone()];
    let mut endpoint = endpoint(move |_| Reply::Frames(frames.clone()));
    endpoint
        .link()
        .send_interest(&mut Interest::new(name("/anything")));
    let mut got = Vec::new();
    while got.is_empty() {
        let polled = endpoint.poll(None, |_, received| {
            if let Received::Interest(interest, _) = received {
                got.push(interest.wire().to_vec());
            }
            ControlFlow::Continue(())
        });
        polled.expect("the connection stands");
    }
    assert_eq!(got, [good]);
    assert_eq!(endpoint.link().n_unparsed(), 1);
}
