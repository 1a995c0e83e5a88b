//! Private keys, plain and under a password, and the SafeBags that hold them.
//! The password of the encrypted ones is `secret`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::Decode;
use pkcs8::pkcs5::pbes2::Kdf;
use tachonym_security::{SafeBag, SigningKey};

const PASSWORD: &[u8] = b"secret";
/// Most rounds of PBKDF2 that are worth a fuzzer's time.
const MAX_ROUNDS: u32 = 1_000;
/// Most rounds that a reader of keys does.
const MAX_READ_ROUNDS: u32 = 5_000_000;
/// Most memory and passes of scrypt that are worth it, as a product.
const MAX_SCRYPT_BYTES: u64 = 1 << 20;

/// Whether it takes no long work to open this, or to refuse it.
fn is_cheap(der: &[u8]) -> bool {
    let Ok(sealed) = EncryptedPrivateKeyInfoRef::from_der(der) else {
        return true;
    };
    match sealed.encryption_algorithm.pbes2().map(|it| &it.kdf) {
        Some(Kdf::Pbkdf2(kdf)) if kdf.iteration_count > MAX_READ_ROUNDS => {
            assert!(SigningKey::from_encrypted_pkcs8(der, PASSWORD).is_err());
            true
        }
        Some(Kdf::Pbkdf2(kdf)) => kdf.iteration_count <= MAX_ROUNDS,
        Some(Kdf::Scrypt(kdf)) => {
            let work = [u64::from(kdf.block_size), u64::from(kdf.parallelization)];
            let cost = kdf.cost_parameter as u64;
            let bytes = work.into_iter().fold(128, u64::saturating_mul);
            bytes.saturating_mul(cost) <= MAX_SCRYPT_BYTES
        }
        _ => true,
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(key) = SigningKey::from_pkcs8(bytes) {
        let der = key.to_pkcs8().expect("it came as PKCS#8");
        let again = SigningKey::from_pkcs8(&der).expect("own encoding");
        assert_eq!(again.public_key_der(), key.public_key_der());
    }
    if is_cheap(bytes) {
        let _ = SigningKey::from_encrypted_pkcs8(bytes, PASSWORD);
    }
    if let Ok(bag) = SafeBag::parse(bytes)
        && is_cheap(bag.encrypted_key())
        && let Ok(key) = bag.open(PASSWORD)
    {
        assert!(bag.certificate().certifies(&key));
    }
});
