//! Keys travel to and from the `openssl` command, which every Debian has.

use std::io::Write;
use std::process::{Command, Stdio};

use tachonym_security::{KeyError, KeyKind, RsaBits, SigningKey, VerifyingKey};

/// Runs `openssl` with `input` on its standard input; its standard output.
fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("needs the openssl command: apt install openssl");
    let mut stdin = child.stdin.take().expect("piped above");
    // It may stop reading early; its exit status tells.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().expect("it ends by itself");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "openssl {arguments:?}: {complaint}"
    );
    output.stdout
}

fn der_keys() -> Vec<(KeyKind, Vec<u8>)> {
    let generate = |arguments: &[&str]| {
        let mut all = vec!["genpkey", "-outform", "DER"];
        all.extend_from_slice(arguments);
        let key = openssl(&all, b"");
        openssl(
            &[
                "pkcs8", "-topk8", "-nocrypt", "-inform", "DER", "-outform", "DER",
            ],
            &key,
        )
    };
    vec![
        (
            KeyKind::Ecdsa,
            generate(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        ),
        (
            KeyKind::Rsa,
            generate(&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
        ),
        (KeyKind::Ed25519, generate(&["-algorithm", "ED25519"])),
    ]
}

#[test]
fn keys_that_openssl_made_and_encrypted_are_read() {
    for (kind, der) in der_keys() {
        let plain = SigningKey::from_pkcs8(&der).expect("a key");
        assert_eq!(plain.kind(), kind);
        let public = openssl(
            &["pkey", "-inform", "DER", "-pubout", "-outform", "DER"],
            &der,
        );
        assert_eq!(plain.public_key_der(), Some(&public[..]));
        assert_eq!(
            VerifyingKey::from_spki(&public)
                .expect("a public key")
                .kind(),
            kind
        );
        for scheme in [
            &["-v2", "aes-256-cbc"][..],
            &["-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512"],
            &["-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA1"],
            &["-v2", "des3", "-v2prf", "hmacWithSHA1"],
            &["-scrypt"],
        ] {
            let mut arguments = vec!["pkcs8", "-topk8", "-inform", "DER", "-outform", "DER"];
            arguments.extend_from_slice(&["-passout", "pass:open sesame"]);
            arguments.extend_from_slice(scheme);
            let sealed = openssl(&arguments, &der);
            let opened = SigningKey::from_encrypted_pkcs8(&sealed, b"open sesame")
                .unwrap_or_else(|e| panic!("{kind} {scheme:?}: {e}"));
            assert_eq!(opened.public_key_der(), plain.public_key_der());
            assert!(SigningKey::from_encrypted_pkcs8(&sealed, b"sesame").is_err());
        }
    }
}

#[test]
fn openssl_reads_the_keys_that_are_written() {
    for key in [
        SigningKey::generate_ecdsa().expect("randomness"),
        SigningKey::generate_rsa(RsaBits::Bits2048).expect("randomness"),
        SigningKey::generate_ed25519().expect("randomness"),
    ] {
        let public = key.public_key_der().expect("a public key");
        let export = ["pkey", "-inform", "DER", "-pubout", "-outform", "DER"];
        let plain = key.to_pkcs8().expect("exports");
        assert_eq!(openssl(&export, &plain), public);
        let sealed = key.to_encrypted_pkcs8(b"open sesame").expect("exports");
        let opened = openssl(
            &[
                "pkcs8",
                "-inform",
                "DER",
                "-outform",
                "DER",
                "-passin",
                "pass:open sesame",
            ],
            &sealed,
        );
        assert_eq!(openssl(&export, &opened), public);
    }
}

#[test]
fn openssl_verifies_the_signatures_and_makes_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |file: &str| dir.path().join(file).display().to_string();
    let message = b"/a/name and some content";
    for key in [
        SigningKey::generate_ecdsa().expect("randomness"),
        SigningKey::generate_rsa(RsaBits::Bits2048).expect("randomness"),
    ] {
        std::fs::write(path("public"), key.public_key_der().expect("public")).expect("writes");
        std::fs::write(path("private"), &*key.to_pkcs8().expect("exports")).expect("writes");
        let signature = key.sign(&[message]).expect("signs");
        std::fs::write(path("signature"), &signature).expect("writes");
        let (public, private) = (path("public"), path("private"));
        let file = path("signature");
        let verify = [
            "dgst",
            "-sha256",
            "-verify",
            &public,
            "-keyform",
            "DER",
            "-signature",
            &file,
        ];
        openssl(&verify, message);
        let theirs = openssl(
            &["dgst", "-sha256", "-sign", &private, "-keyform", "DER"],
            message,
        );
        let checker = key.verifying_key().expect("own public key");
        assert_eq!(
            checker.verify(key.signature_type(), &[message], &theirs),
            Ok(())
        );
    }
}

#[test]
fn foreign_algorithms_and_curves_of_openssl_are_named_in_the_refusal() {
    let arguments = ["genpkey", "-outform", "DER", "-algorithm", "X25519"];
    let error = SigningKey::from_pkcs8(&openssl(&arguments, b"")).expect_err("no signatures");
    assert!(
        matches!(error, KeyError::UnsupportedAlgorithm { .. }),
        "{error}"
    );
    let arguments = ["genpkey", "-outform", "DER", "-algorithm", "EC"];
    let curve = ["-pkeyopt", "ec_paramgen_curve:P-384"];
    let error = SigningKey::from_pkcs8(&openssl(&[&arguments[..], &curve].concat(), b""));
    assert!(matches!(error, Err(KeyError::Malformed { .. })));
    let arguments = ["genpkey", "-outform", "DER", "-algorithm", "RSA"];
    let short = ["-pkeyopt", "rsa_keygen_bits:1024"];
    let error = SigningKey::from_pkcs8(&openssl(&[&arguments[..], &short].concat(), b""));
    assert!(matches!(error, Err(KeyError::Malformed { .. })));
}
