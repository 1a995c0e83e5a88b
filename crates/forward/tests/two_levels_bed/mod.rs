//! An engine with a content store of two levels, the second on a device in memory.
#![allow(dead_code, reason = "each test program uses a part of it")]

use tachonym_forward::EngineConfig;
use tachonym_packet::Component;
use tachonym_store::device::{Device, Fault, Injection, Op, Ram};
use tachonym_store::layout::Superblock;
use tachonym_store::{Beginning, Config, SecondLevel};
use tachonym_tables::CsCapacity;

use crate::bed::*;

/// A node with two levels and their device.
pub(crate) struct TwoLevels {
    pub(crate) node: Node,
    pub(crate) device: Ram,
}

pub(crate) fn config() -> Config {
    Config {
        batch_len: 4,
        max_batches: 10_000,
        max_reads: 4,
        n_write_buffers: 4,
        write_buffer_bytes: 64 << 10,
        assembly_bytes: 1 << 20,
        ..Config::default()
    }
}

impl TwoLevels {
    /// The first level has room for `max_pkts` Data.
    pub(crate) fn new(max_pkts: usize, config: Config) -> Self {
        let mut node = Node::with(EngineConfig {
            cs: CsCapacity {
                max_pkts,
                ..CsCapacity::default()
            },
            ..EngineConfig::default()
        });
        for face in [A, B, C, D] {
            node.face(face, REMOTE);
        }
        node.route("/", B, 0);
        let volume = Superblock {
            key: [5; 16],
            worker: 0,
            volume: 0,
            n_volumes: 1,
            batch_len: config.batch_len as u8,
            region_bytes: 1 << 20,
            n_regions: 15,
            first_seq: 1,
            context: 0,
        };
        let store = SecondLevel::new(config, &[volume], Beginning::New).expect("memory");
        node.engine.cs_mut().set_second_level(Some(store));
        Self {
            node,
            device: Ram::new(&[16 << 20]),
        }
    }

    /// With these Data on the device, and none in the first level.
    pub(crate) fn holding(stored: &[Data]) -> Self {
        let mut it = Self::new(1, config());
        for data in stored {
            it.fetch(data);
        }
        it.flush();
        it.fetch(&data("/something/else"));
        it
    }

    pub(crate) fn store(&mut self) -> &mut SecondLevel {
        self.node
            .engine
            .cs_mut()
            .second_level()
            .expect("there is one")
    }

    pub(crate) fn fetch(&mut self, data: &Data) {
        let asked = Interest {
            name: data.name.clone(),
            ..interest("/").nonce(77)
        };
        self.node.interest(A, &asked);
        self.node.data(B, data);
        self.pump();
    }

    /// Writes all that was offered.
    pub(crate) fn flush(&mut self) {
        let now = self.node.now;
        let ticket = self.store().flush(now);
        self.pump();
        assert_eq!(self.store().poll_flushed(), ticket);
    }

    /// Lets the device do some of what it has been asked for.
    pub(crate) fn turn(&mut self) -> Vec<Sent> {
        let mut outbox = Outbox::default();
        let mut completions = Vec::new();
        while let Some(request) = self.store().poll_request() {
            self.device.submit(request).expect("room for a few");
        }
        self.device.start();
        self.device.poll(self.node.now, &mut completions);
        for completion in completions {
            let now = self.node.now;
            let engine = &mut self.node.engine;
            engine.handle_completion(now, completion, &mut outbox);
        }
        outbox.0
    }

    /// Lets the device do what it has been asked for.
    pub(crate) fn pump(&mut self) -> Vec<Sent> {
        let mut outbox = Outbox::default();
        let mut completions = Vec::new();
        loop {
            while let Some(request) = self.store().poll_request() {
                self.device.submit(request).expect("room for a few");
            }
            self.device.start();
            self.device.poll(self.node.now, &mut completions);
            if completions.is_empty() {
                return outbox.0;
            }
            for completion in completions.drain(..) {
                let now = self.node.now;
                self.node
                    .engine
                    .handle_completion(now, completion, &mut outbox);
            }
        }
    }

    /// What is sent at once for an Interest, and when the device is done.
    pub(crate) fn ask(&mut self, asked: &Interest) -> (Vec<Sent>, Vec<Sent>) {
        let at_once = self.node.interest(C, asked);
        (at_once, self.pump())
    }

    pub(crate) fn fail_reads(&mut self, fault: Fault) {
        self.device.inject(Injection {
            op: Op::Read,
            skip: 0,
            times: u64::MAX,
            fault,
        });
    }
}

pub(crate) fn segment(object: &str, number: u64) -> Data {
    Data {
        name: name(object).with(&Component::segment(number)),
        ..data("/")
    }
}

pub(crate) fn segments(object: &str, n: u64) -> Vec<Data> {
    (0..n).map(|number| segment(object, number)).collect()
}

pub(crate) fn interest_for(data: &Data) -> Interest {
    Interest {
        name: data.name.clone(),
        ..interest("/")
    }
}
