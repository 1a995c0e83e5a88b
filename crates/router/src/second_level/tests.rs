//! A worker's store when it comes in the place of another one.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use tachonym_forward::EngineConfig;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, HashKey, InterestRewrite, InterestView, NackReason};
use tachonym_store::device::Request;

use super::*;

fn name(number: usize) -> Name {
    format!("/erased/{number}").parse().expect("a name")
}

fn config(folder: &Path) -> Config {
    let text = format!(
        "[[second_level.volume]]\npath = \"{}\"\nbytes = 67108864\n",
        folder.display()
    );
    Config::parse(&text).expect("good")
}

fn new_engine() -> Engine {
    let key = HashKey::from_u64s(1, 2);
    Engine::new(EngineConfig::default(), key, 3).expect("memory")
}

/// Nothing is sent here.
struct Nowhere;

impl Output for Nowhere {
    fn send_interest(&mut self, _: FaceId, _: &InterestView<'_>, _: &InterestRewrite, _: &Headers) {
        unreachable!("no Interest has come");
    }

    fn send_data(&mut self, _: FaceId, _: &[u8], _: &Headers) {
        unreachable!("the test submits no such request");
    }

    fn send_nack(&mut self, _: FaceId, _: NackReason, _: &[u8], _: &Headers) {
        unreachable!("the test submits no such request");
    }
}

/// A device that does nothing until it is let go.
#[derive(Default)]
struct Hung {
    kept: Vec<Request>,
    may_go: Arc<Mutex<bool>>,
}

impl Device for Hung {
    fn submit(&mut self, request: Request) -> Result<(), Request> {
        self.kept.push(request);
        Ok(())
    }

    fn start(&mut self) {}

    fn poll(&mut self, _: MonoNs, completions: &mut Vec<Completion>) {
        if *self.may_go.lock().expect("no holder panics") {
            completions.extend(self.kept.drain(..).map(|request| Completion {
                token: request.token,
                outcome: Ok(request.len),
                buffer: request.buffer,
            }));
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn n_in_flight(&self) -> usize {
        self.kept.len()
    }
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no holder panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// How often this was said.
    fn n_said(&self, what: &str) -> usize {
        let bytes = self.0.lock().expect("no holder panics");
        String::from_utf8_lossy(&bytes).matches(what).count()
    }
}

#[test]
fn a_worker_that_waits_long_for_its_second_level_says_so_once_and_when_it_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    let stores = Stores::take(&config).expect("it is there");
    let stores = stores.expect("there is a second level");
    drop(stores.open(&config, 0).expect("there is room"));
    // It is there now, and looked through.
    let (mut ssd, store) = stores.open(&config, 0).expect("it is there");
    let device = Hung::default();
    let may_go = Arc::clone(&device.may_go);
    ssd.device = Box::new(device);
    let mut engine = new_engine();
    engine.cs_mut().set_second_level(Some(store));
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
    tracing::subscriber::with_default(subscriber.finish(), || {
        let (now, stall_ms) = (monotonic_now(), config.second_level.stall_ms);
        engine.handle_timeout(now, &mut Nowhere);
        ssd.give_requests(now, &mut engine);
        assert!(ssd.device.n_in_flight() > 0);
        let mut engine = new_engine();
        ssd.begin_anew(now);
        let due = now.plus_ms(stall_ms);
        assert_eq!(ssd.poll_timeout(), Some(due));
        let is_long = "worker 0 has no SSD level";
        for (after_ms, n_said) in [(0, 0), (stall_ms - 1, 0), (stall_ms, 1), (9 * stall_ms, 1)] {
            ssd.take_completions(now.plus_ms(after_ms), &mut engine, &mut Nowhere);
            assert_eq!(log.n_said(is_long), n_said, "{after_ms} ms");
            assert!(engine.second_level().is_none());
        }
        assert_eq!(ssd.poll_timeout(), None, "the device wakes the thread");
        *may_go.lock().expect("no holder panics") = true;
        ssd.take_completions(now.plus_ms(10 * stall_ms), &mut engine, &mut Nowhere);
        assert!(engine.second_level().is_some());
        assert_eq!(log.n_said("worker 0 has its SSD level again"), 1);
        assert_eq!(ssd.poll_timeout(), None);
    });
}

/// What was erased while there was no store; then what its store has counted: erased
/// prefixes, and erasures merged.
fn erased_meanwhile(n_prefixes: usize) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    let stores = Stores::take(&config).expect("it is there");
    let stores = stores.expect("there is a second level");
    let (mut ssd, store) = stores.open(&config, 0).expect("there is room");
    drop(store);
    ssd.begin_anew(monotonic_now());
    for number in 0..n_prefixes {
        ssd.erase_later(name(number));
        ssd.erase_later(name(number));
    }
    let mut engine = new_engine();
    ssd.give_store(monotonic_now(), &mut engine);
    let counters = engine.second_level().expect("it was given").counters();
    (counters.n_erased_prefixes, counters.n_erasures_merged)
}

#[test]
fn what_is_erased_while_there_is_no_store_is_erased_when_it_comes() {
    assert_eq!(erased_meanwhile(MAX_TO_ERASE), (MAX_TO_ERASE as u64, 0));
    for n_prefixes in [MAX_TO_ERASE + 1, 4 * MAX_TO_ERASE] {
        assert_eq!(erased_meanwhile(n_prefixes), (1, 1));
    }
}
