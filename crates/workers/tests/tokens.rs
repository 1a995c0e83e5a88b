//! PIT tokens: answers go where they lead, and by their names without one.

use tachonym_dispatch::{DispatchBy, Laps, LapsConfig, MapKind, Publisher, ServiceId, WorkerId};
use tachonym_forward::RxPacket;
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    Data, FaceId, HashKey, HashedNames, Interest, InterestView, MonoNs, Name, PitToken,
};
use tachonym_workers::{
    Dispatcher, LinkConfig, Links, Receiver, ReceiverConfig, Scheduler, Tokens,
};

const N_WORKERS: usize = 2;

struct Bed {
    receiver: Receiver,
    scheduler: Scheduler,
    links: Links,
    workers: Vec<Links>,
    /// As a worker has one.
    dispatcher: Dispatcher,
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

impl Bed {
    fn new() -> Self {
        let laps = Laps::new(&LapsConfig {
            map: MapKind::Buckets { n_buckets_log2: 6 },
            ..LapsConfig::new(N_WORKERS)
        });
        let laps = laps.expect("so many workers");
        let publisher = Publisher::new(laps.homes());
        let dispatcher = || {
            let key = HashKey::from_u64s(1, 2);
            let dispatcher = Dispatcher::new(DispatchBy::Name, key, publisher.reader());
            dispatcher.with_tokens(Some(Tokens::new(9)))
        };
        let config = ReceiverConfig::default();
        let (receiver, view) = Receiver::new(None, N_WORKERS, dispatcher(), config);
        let mut workers = Links::mesh(N_WORKERS + 1, LinkConfig::default());
        let (links, dispatcher) = (workers.pop().expect("that of the receiver"), dispatcher());
        Self {
            receiver,
            scheduler: Scheduler::new(laps, N_WORKERS, publisher, vec![view], 1_000),
            links,
            workers,
            dispatcher,
        }
    }

    /// What an Interest for `/a` carries that leaves from this worker.
    fn token(&self, worker: WorkerId, can_be_prefix: bool) -> Option<PitToken> {
        let mut interest = Interest::new(name("/a"));
        interest.can_be_prefix = can_be_prefix;
        let wire = interest.encode();
        let interest = InterestView::parse(&wire).expect("an Interest");
        self.dispatcher.token_maker(worker)?.token(&interest)
    }

    /// To which worker a packet goes that comes with this token.
    fn receive(&mut self, wire: &[u8], pit_token: Option<PitToken>) -> usize {
        self.receiver
            .begin(&mut self.links, 0, |_| panic!("this thread has no worker"));
        let headers = Headers {
            pit_token,
            ..Headers::EMPTY
        };
        let packet = RxPacket::parse(FaceId(256), &headers, wire);
        let (mut burst, mut names) = (vec![packet.expect("no Nack")], HashedNames::new());
        self.receiver
            .take(&mut burst, &mut names, &mut self.links, |_| true);
        assert!(burst.is_empty(), "this thread has no worker");
        self.links.flush();
        let from = WorkerId(N_WORKERS as u16);
        let mut got = (0..N_WORKERS).filter(|&worker| {
            let batch = self.workers[worker].receive(from);
            batch.is_some_and(|batch| {
                self.workers[worker].give_back(from, batch);
                true
            })
        });
        let worker = got.next().expect("one of them");
        assert_eq!(got.next(), None);
        worker
    }
}

#[test]
fn answers_go_by_our_tokens_and_all_else_by_its_name() {
    let mut bed = Bed::new();
    let home = bed.dispatcher.home(name("/a").view());
    // Tokens lead home; to tell them from names, this one leads elsewhere.
    let elsewhere = WorkerId(1 - home.0);
    let token = bed.token(elsewhere, false).expect("tokens are made");
    assert_eq!(bed.token(elsewhere, true), None);
    let data = Data::new(name("/a")).encode_with_digest();
    let interest = Interest::new(name("/a")).encode();
    assert_eq!(bed.receive(&data, Some(token)), elsewhere.idx());
    assert_eq!(bed.receive(&data, None), home.idx());
    assert_eq!(bed.receive(&data, PitToken::new(b"another's")), home.idx());
    assert_eq!(bed.receive(&interest, Some(token)), home.idx());
    // Homes have changed: who had the name may not be who has it.
    let (service, key) = bed
        .dispatcher
        .key(name("/b").view())
        .expect("not always at one");
    let to = WorkerId(1 - bed.dispatcher.home(name("/b").view()).0);
    bed.scheduler
        .laps_mut()
        .pin(service, key, to)
        .expect("there is room");
    assert_eq!(service, ServiceId(0));
    bed.scheduler.tick(MonoNs(1));
    assert_eq!(bed.receive(&data, Some(token)), home.idx());
    bed.dispatcher.refresh();
    let token = bed.token(elsewhere, false).expect("tokens are made");
    assert_eq!(bed.receive(&data, Some(token)), elsewhere.idx());
}
