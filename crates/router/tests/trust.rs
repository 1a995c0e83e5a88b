//! `get --trust`: only what the right key has signed is taken.

mod bed;

use std::path::PathBuf;

use bed::{Bed, Server, generate, noise};

/// A producer's key, its certificate, and that of another key of the same
/// identity.
struct Keys {
    store: PathBuf,
    right: String,
    wrong: String,
}

impl Keys {
    fn new(bed: &Bed) -> Self {
        let certify = |store: &str| {
            let file = bed.path(&format!("{store}.ndncert"));
            let certificate = generate(&bed.path(store), "/producer");
            std::fs::write(&file, certificate).expect("a file");
            file.to_str().expect("text").to_owned()
        };
        Self {
            right: certify("right"),
            wrong: certify("wrong"),
            store: bed.path("right"),
        }
    }

    /// Serves `content` as `/signed`, version 1.
    fn serve(&self, bed: &Bed, content: &[u8]) -> Server {
        let store = self.store.to_str().expect("text");
        let line = format!(
            "put /signed - --json --version 1 --segment-bytes 1000 \
             --identity /producer --key-store {store}"
        );
        let arguments: Vec<&str> = line.split_whitespace().collect();
        bed.serve(&arguments, content)
    }
}

#[test]
fn what_the_right_key_has_signed_is_taken() {
    let bed = Bed::new();
    let keys = Keys::new(&bed);
    let content = noise(20_000);
    let _server = keys.serve(&bed, &content);
    let Keys { right, wrong, .. } = &keys;
    for trust in [
        &[][..],
        &["--trust", right],
        &["--trust", wrong, "--trust", right],
        &["--discover", "prefix", "--trust", right],
    ] {
        let output = bed.run(&[&["get", "/signed", "--quiet"], trust].concat());
        assert!(output.status.success(), "{trust:?}: {output:?}");
        assert!(output.stdout == content, "{trust:?}");
    }
}

#[test]
fn what_others_have_signed_is_not_taken_and_leaves_no_file() {
    let bed = Bed::new();
    let keys = Keys::new(&bed);
    let _signed = keys.serve(&bed, &noise(20_000));
    let _digest = bed.serve(&["put", "/digest", "-", "--json"], b"anybody's");
    let folder = bed.path("copies");
    std::fs::create_dir(&folder).expect("a folder");
    let copy = folder.join("copy");
    let copy = copy.to_str().expect("text");
    for (name, certificate) in [
        // By metadata, by prefix, and by the segments alone.
        ("/signed", &keys.wrong),
        ("/signed --discover prefix", &keys.wrong),
        ("/signed/v=1", &keys.wrong),
        ("/digest", &keys.right),
    ] {
        let line = format!("get {name} --trust {certificate} -o {copy}");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (code, error) = bed.failure(&arguments);
        assert_eq!(code, 7, "{line}: {error}");
        let left = std::fs::read_dir(&folder).expect("a folder").count();
        assert_eq!(left, 0, "{line}");
        // Nor does a byte of it reach standard output.
        let output = bed.run(&arguments[..arguments.len() - 2]);
        assert_eq!(output.status.code(), Some(7), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_certificate_that_cannot_be_read_is_told_before_anything_is_asked() {
    let bed = Bed::new();
    let garbage = bed.path("garbage");
    std::fs::write(&garbage, "no certificate").expect("a file");
    let garbage = garbage.to_str().expect("text");
    for file in ["/nowhere/file", garbage] {
        let (code, error) = bed.failure(&["get", "/nobody", "--trust", file]);
        assert_eq!(code, 1, "{error}");
        assert!(error.contains(file), "{error}");
    }
}
