//! Private keys under a password: PBES2-encrypted PKCS#8 (RFC 8018, RFC 5958).
//!
//! Owns the work that is done for a password. Writes PBKDF2 with HMAC-SHA-256
//! and AES-256-CBC, which OpenSSL and everything built on it reads. Reads also
//! scrypt, other AES sizes, SHA-1 and triple DES, which older NDN libraries
//! wrote; refuses PBES1 and parameters that would cost a reader more memory or
//! time than a key is worth.

use pkcs8::der::Decode;
use pkcs8::pkcs5::pbes2::{Kdf, Parameters};
use pkcs8::pkcs5::{self, EncryptionScheme};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};

use crate::key::random_bytes;
use crate::{KeyError, SigningKey};

/// PBKDF2 rounds that are written: some 0.1 s of work.
const ITERATIONS: u32 = 600_000;
/// Most PBKDF2 rounds that are done for a key that is read.
const MAX_ITERATIONS: u32 = 5_000_000;
/// Most memory that scrypt may use for a key that is read, in bytes.
const MAX_SCRYPT_BYTES: u64 = 128 << 20;
/// Most work that scrypt may do, as passes over that memory.
const MAX_SCRYPT_PASSES: u16 = 8;

impl SigningKey {
    /// The private key as encrypted PKCS#8 in DER.
    ///
    /// # Errors
    /// If the key is a digest or an HMAC secret, or the system has no
    /// randomness.
    pub fn to_encrypted_pkcs8(&self, password: &[u8]) -> Result<Vec<u8>, KeyError> {
        let der = self.to_pkcs8()?;
        let (mut salt, mut iv) = ([0; 16], [0; 16]);
        random_bytes(&mut salt)?;
        random_bytes(&mut iv)?;
        let failed = KeyError::Library {
            operation: "encrypt the key",
        };
        let parameters = Parameters::generate_pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, iv)
            .map_err(|_| failed.clone())?;
        let info = PrivateKeyInfoRef::from_der(&der).map_err(|_| failed.clone())?;
        let sealed = info
            .encrypt_with_params(parameters, password)
            .map_err(|_| failed)?;
        Ok(sealed.as_bytes().to_vec())
    }

    /// Reads an encrypted PKCS#8 private key in DER.
    ///
    /// # Errors
    /// If it is malformed, encrypted in an unsupported or too costly way, does
    /// not open with `password`, or holds a key that
    /// [`from_pkcs8`](Self::from_pkcs8) refuses.
    pub fn from_encrypted_pkcs8(der: &[u8], password: &[u8]) -> Result<Self, KeyError> {
        let sealed =
            EncryptedPrivateKeyInfoRef::from_der(der).map_err(|e| KeyError::Malformed {
                form: "encrypted PKCS#8 private key",
                reason: e.to_string(),
            })?;
        check_cost(&sealed.encryption_algorithm)?;
        let plain = sealed.decrypt(password).map_err(|e| match e {
            pkcs8::Error::EncryptedPrivateKey(pkcs5::Error::UnsupportedAlgorithm { oid }) => {
                unacceptable(format!("algorithm {oid} is not supported"))
            }
            _ => KeyError::WrongPassword,
        })?;
        Self::from_pkcs8(plain.as_bytes())
    }
}

fn unacceptable(reason: String) -> KeyError {
    KeyError::UnacceptableEncryption { reason }
}

fn check_cost(scheme: &EncryptionScheme) -> Result<(), KeyError> {
    let Some(parameters) = scheme.pbes2() else {
        return Err(unacceptable(
            "PBES1; encrypt the key again, with `openssl pkcs8 -topk8 -v2 aes-256-cbc`".into(),
        ));
    };
    match &parameters.kdf {
        Kdf::Pbkdf2(kdf) if (1..=MAX_ITERATIONS).contains(&kdf.iteration_count) => Ok(()),
        Kdf::Pbkdf2(kdf) => Err(unacceptable(format!(
            "{} rounds of PBKDF2, not 1 to {MAX_ITERATIONS}",
            kdf.iteration_count
        ))),
        Kdf::Scrypt(kdf) => {
            #[allow(
                clippy::useless_conversion,
                reason = "the cost's width is the library's"
            )]
            let cost = u64::from(kdf.cost_parameter);
            let memory_bytes = cost.saturating_mul(u64::from(kdf.block_size) * 128);
            let fits = cost.is_power_of_two()
                && (1..=MAX_SCRYPT_BYTES).contains(&memory_bytes)
                && (1..=MAX_SCRYPT_PASSES).contains(&kdf.parallelization);
            if fits {
                return Ok(());
            }
            Err(unacceptable(format!(
                "scrypt with N={cost}, r={}, p={}, which is out of range",
                kdf.block_size, kdf.parallelization
            )))
        }
        _ => Err(unacceptable("unknown key derivation".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pkcs8::der::Encode;
    use pkcs8::pkcs5::pbes2::{Pbkdf2Params, ScryptParams};

    #[test]
    fn the_right_password_opens_and_a_wrong_one_does_not() {
        let key = SigningKey::generate_ecdsa().expect("randomness");
        let sealed = key.to_encrypted_pkcs8(b"secret").expect("exports");
        let opened = SigningKey::from_encrypted_pkcs8(&sealed, b"secret").expect("opens");
        assert_eq!(opened.public_key_der(), key.public_key_der());
        for wrong in [&b""[..], b"Secret"] {
            let error = SigningKey::from_encrypted_pkcs8(&sealed, wrong).expect_err("wrong");
            // Rarely, rubbish has valid padding, and is then no DER.
            assert!(matches!(
                error,
                KeyError::WrongPassword | KeyError::Malformed { .. }
            ));
        }
    }

    /// A sealed key with these derivation parameters and no meaning.
    fn sealed_with(kdf: Kdf) -> Vec<u8> {
        let encryption = pkcs8::pkcs5::pbes2::EncryptionScheme::Aes256Cbc { iv: [0; 16] };
        let data = pkcs8::der::asn1::OctetStringRef::new(&[0; 32]).expect("short");
        let sealed = EncryptedPrivateKeyInfoRef {
            encryption_algorithm: EncryptionScheme::Pbes2(Parameters { kdf, encryption }),
            encrypted_data: data,
        };
        sealed.to_der().expect("encodes")
    }

    #[test]
    fn absurd_work_for_a_password_is_refused() {
        let good = Pbkdf2Params::hmac_sha256(1, &[0; 8]).expect("parameters");
        for iteration_count in [0, MAX_ITERATIONS + 1, u32::MAX] {
            let kdf = Kdf::Pbkdf2(Pbkdf2Params {
                iteration_count,
                ..good
            });
            let error =
                SigningKey::from_encrypted_pkcs8(&sealed_with(kdf), b"p").expect_err("absurd");
            assert!(matches!(error, KeyError::UnacceptableEncryption { .. }));
        }
        let scrypt = |cost_parameter, block_size, parallelization| {
            Kdf::Scrypt(ScryptParams {
                salt: good.salt,
                cost_parameter,
                block_size,
                parallelization,
                key_length: None,
            })
        };
        for kdf in [
            scrypt(0, 8, 1),
            scrypt(3, 8, 1),
            scrypt(1 << 24, 8, 1),
            scrypt(2, u16::MAX, u16::MAX),
            scrypt(2, 0, 1),
            scrypt(2, 1, 0),
        ] {
            let error =
                SigningKey::from_encrypted_pkcs8(&sealed_with(kdf), b"p").expect_err("absurd");
            assert!(matches!(error, KeyError::UnacceptableEncryption { .. }));
        }
    }
}
