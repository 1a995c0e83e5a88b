//! A stream face whose peer sends anything, in pieces: framing, NDNLPv2,
//! reassembly. What comes out is whole packets; the next peer is served.
#![no_main]

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tachonym_face::{ChannelOptions, FaceSystem, RxBatch, SystemOptions};

struct Bed {
    faces: FaceSystem,
    batch: RxBatch,
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut faces = FaceSystem::new(SystemOptions::default()).expect("epoll");
        let channel = ChannelOptions::unix(folder.path().join("s"));
        faces.listen(&channel).expect("it listens");
        Self {
            faces,
            batch: RxBatch::new(),
            folder,
        }
    }

    /// Polls until nothing is left to read.
    fn turn(&mut self) {
        loop {
            self.faces
                .poll(Some(Duration::ZERO), &mut self.batch)
                .expect("it waits");
            let mut n_events = 0;
            while self.faces.poll_event().is_some() {
                n_events += 1;
            }
            for frame in self.batch.frames() {
                assert!(!frame.l3.is_empty() && frame.l3.len() <= 8800);
            }
            self.faces.flush();
            if self.batch.is_empty() && n_events == 0 {
                break;
            }
        }
    }
}

thread_local! {
    static BED: RefCell<Bed> = RefCell::new(Bed::new());
}

fuzz_target!(|bytes: &[u8]| {
    BED.with_borrow_mut(|bed| {
        let peer = UnixStream::connect(bed.folder.path().join("s"));
        let mut peer = peer.expect("it listens");
        bed.turn();
        // Cut where the first byte says.
        let cut = bytes
            .first()
            .map_or(0, |&b| usize::from(b))
            .min(bytes.len());
        for part in [&bytes[..cut], &bytes[cut..]] {
            // The face may be closed by then.
            let _ = peer.write_all(part);
            bed.turn();
        }
        drop(peer);
        bed.turn();
        assert_eq!(bed.faces.n_faces(), 0);
    });
});
