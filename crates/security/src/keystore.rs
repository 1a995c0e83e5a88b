//! The directory in which keys and certificates rest.
//!
//! Owns the layout:
//!
//! ```text
//! <directory>/                mode 0700
//!   keys/<sha256>.key         private key, mode 0600; <sha256> is the hash of the key's name
//!   certs/<sha256>.ndncert    certificate in base64; <sha256> is the hash of its name
//!   defaults                  what is the default, one name a line
//!   lock                      held while something changes
//! ```
//!
//! Hashes are over the whole Name element, in hexadecimal. A key file has a
//! line `Key-Name: <URI>` and then the key in PEM (RFC 7468): `PRIVATE KEY`
//! (PKCS#8), which OpenSSL reads as it is, or `NDN HMAC KEY`, the bare secret.
//! The file `defaults` has lines `identity <URI>`, `key <URI>` (of its
//! identity) and `certificate <URI>` (of its key). Where no default is set, or
//! what is set is gone, it is the first in canonical order.
//!
//! Every change is one file written beside its place and renamed, so that a
//! crash leaves the old or the new. Files of other names are left alone; files
//! that cannot be read are listed as skipped and disturb nothing else. Nothing
//! is cached: several processes may use one directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tachonym_packet::Name;
use zeroize::Zeroizing;

use crate::certificate::is_certificate_name;
use crate::key::random_bytes;
use crate::{
    Certificate, CertificateError, KeyError, KeyKind, SafeBag, SafeBagError, Signer, SigningKey,
    Validity, identity_of_key, is_key_name, key_name, random_key_id, sha256, text,
};

const KEYS: &str = "keys";
const KEY_SUFFIX: &str = "key";
const CERTS: &str = "certs";
const CERT_SUFFIX: &str = "ndncert";
const DEFAULTS: &str = "defaults";
const LOCK: &str = "lock";

const NAME_HEADER: &str = "Key-Name: ";
const PKCS8_LABEL: &str = "PRIVATE KEY";
const HMAC_LABEL: &str = "NDN HMAC KEY";

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Validity of the certificate that a new key gets, in days: twenty years, as
/// `ndnsec` has it.
const SELF_SIGNED_DAYS: u32 = 7300;

/// Why a key store does not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyStoreError {
    /// A file or directory cannot be read or written.
    #[error(
        "cannot {action} {path}: {error}; check its owner and permissions, or use another directory"
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path} is damaged: {reason}; restore it from a backup, or delete it")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such identity.
    #[error("no identity {0} in this key store; `tachonym keys list` shows those in it")]
    NoIdentity(Name),
    /// There is no such key.
    #[error("no key {0} in this key store; `tachonym keys list` shows those in it")]
    NoKey(Name),
    /// There is no such certificate.
    #[error("no certificate {0} in this key store; `tachonym keys list` shows those in it")]
    NoCertificate(Name),
    /// The store has no keys at all.
    #[error("the key store {0} is empty; create a key with `tachonym keys generate /my/name`")]
    Empty(PathBuf),
    /// There is another key or certificate of this name.
    #[error("{0} exists already; delete it first")]
    Exists(Name),
    /// The name is not that of a key.
    #[error("{0} is not the name of a key; it has the form /<identity>/KEY/<key-id>")]
    BadKeyName(Name),
    /// The certificate is not of the key that is here under its name.
    #[error(
        "certificate {0} is for another public key than the key of that name in this key store"
    )]
    Mismatch(Name),
    /// A key cannot be made or used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A certificate cannot be made or read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A SafeBag cannot be made or opened.
    #[error(transparent)]
    SafeBag(#[from] SafeBagError),
}

type Result<T> = std::result::Result<T, KeyStoreError>;

/// A directory of keys and certificates.
#[derive(Clone, Debug)]
pub struct KeyStore {
    dir: PathBuf,
}

/// What a key store holds.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Identities in canonical order of their names.
    pub identities: Vec<IdentityEntry>,
    /// Certificates of keys that are not here.
    pub other_certificates: Vec<CertificateEntry>,
    /// Files that look like ours and could not be read.
    pub skipped: Vec<Skipped>,
}

/// An identity and its keys.
#[derive(Clone, Debug)]
pub struct IdentityEntry {
    /// Its name.
    pub name: Name,
    /// Whether it is the default.
    pub is_default: bool,
    /// Its keys in canonical order; at least one.
    pub keys: Vec<KeyEntry>,
}

/// A key and its certificates.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// Its name.
    pub name: Name,
    /// Its kind.
    pub kind: KeyKind,
    /// Whether it is the default of its identity.
    pub is_default: bool,
    /// Its certificates in canonical order.
    pub certificates: Vec<CertificateEntry>,
}

/// A certificate.
#[derive(Clone, Debug)]
pub struct CertificateEntry {
    /// The certificate.
    pub certificate: Certificate,
    /// Whether it is the default of its key.
    pub is_default: bool,
}

/// A file that could not be read.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

/// The file `defaults`.
#[derive(Default)]
struct Defaults {
    identity: Option<Name>,
    /// Identity to key.
    keys: BTreeMap<Name, Name>,
    /// Key to certificate.
    certificates: BTreeMap<Name, Name>,
}

impl KeyStore {
    /// Opens the key store in `dir`, and makes it if it is not there.
    ///
    /// # Errors
    /// If directories cannot be made or are not ours to use.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        for path in [dir.clone(), dir.join(KEYS), dir.join(CERTS)] {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(&path)
                .map_err(io_error("make directory", &path))?;
        }
        Ok(Self { dir })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything that is here.
    ///
    /// # Errors
    /// If the directories cannot be read. Single files that cannot be are
    /// listed as skipped.
    pub fn list(&self) -> Result<Listing> {
        let defaults = self.read_defaults()?;
        let mut listing = Listing::default();
        let mut certificates: BTreeMap<Name, Vec<Certificate>> = BTreeMap::new();
        for path in self.files(CERTS, CERT_SUFFIX)? {
            match read_certificate(&path) {
                Ok(found) => certificates
                    .entry(found.key_name().to_name())
                    .or_default()
                    .push(found),
                Err(error) => listing.skipped.push(skipped(path, &error)),
            }
        }
        let mut identities: BTreeMap<Name, Vec<KeyEntry>> = BTreeMap::new();
        for path in self.files(KEYS, KEY_SUFFIX)? {
            let (name, key) = match read_key(&path) {
                Ok(found) => found,
                Err(error) => {
                    listing.skipped.push(skipped(path, &error));
                    continue;
                }
            };
            let own = certificates.remove(&name).unwrap_or_default();
            let default = defaults.certificates.get(&name);
            let Some(identity) = identity_of_key(name.view()).map(|view| view.to_name()) else {
                continue;
            };
            identities.entry(identity).or_default().push(KeyEntry {
                kind: key.kind(),
                is_default: false,
                certificates: certificate_entries(own, default),
                name,
            });
        }
        listing.identities = identities
            .into_iter()
            .map(|(name, mut keys)| {
                keys.sort_by(|a, b| a.name.cmp(&b.name));
                let default = defaults.keys.get(&name);
                let idx = default_idx(&keys, |key| Some(&key.name) == default);
                keys[idx].is_default = true;
                IdentityEntry {
                    name,
                    is_default: false,
                    keys,
                }
            })
            .collect();
        let idx = default_idx(&listing.identities, |identity| {
            Some(&identity.name) == defaults.identity.as_ref()
        });
        if let Some(identity) = listing.identities.get_mut(idx) {
            identity.is_default = true;
        }
        listing.other_certificates = certificates
            .into_values()
            .flatten()
            .map(|certificate| CertificateEntry {
                certificate,
                is_default: false,
            })
            .collect();
        Ok(listing)
    }

    /// Makes a key for `identity`, with a random key id and, unless it is an
    /// HMAC secret, a self-signed certificate. `generate` makes the key:
    /// `SigningKey::generate_ecdsa`, say. `wall_ms` is now, in milliseconds
    /// since the Unix epoch.
    ///
    /// # Errors
    /// If the key cannot be made or written.
    pub fn create_key(
        &self,
        identity: &Name,
        generate: impl FnOnce() -> std::result::Result<SigningKey, KeyError>,
        wall_ms: u64,
    ) -> Result<Name> {
        let name = key_name(identity, &random_key_id()?);
        let key = generate()?;
        self.add_key(&name, &key)?;
        if key.public_key_der().is_some() {
            let validity = Validity::days_from(wall_ms, SELF_SIGNED_DAYS);
            let certificate = Certificate::self_signed(&name, &key, wall_ms, validity)?;
            self.add_certificate(&certificate)?;
        }
        Ok(name)
    }

    /// Adds a private key.
    ///
    /// # Errors
    /// If `name` is not a key's, another key of this name is here, the key is
    /// a digest, or it cannot be written.
    pub fn add_key(&self, name: &Name, key: &SigningKey) -> Result<()> {
        if !is_key_name(name.view()) {
            return Err(KeyStoreError::BadKeyName(name.clone()));
        }
        let pem = match key.hmac_secret() {
            Some(secret) => text::to_pem(HMAC_LABEL, secret),
            None => text::to_pem(PKCS8_LABEL, &key.to_pkcs8()?),
        };
        let content = Zeroizing::new(format!("{NAME_HEADER}{name}\n{}", &*pem));
        let _lock = self.lock()?;
        let path = self.key_path(name);
        if path.exists() {
            return Err(KeyStoreError::Exists(name.clone()));
        }
        self.write(&path, content.as_bytes(), 0o600)
    }

    /// The private key of this name.
    ///
    /// # Errors
    /// If it is not here, or its file is damaged.
    pub fn key(&self, name: &Name) -> Result<SigningKey> {
        let path = self.key_path(name);
        let (found, key) = match read_key(&path) {
            Err(error) if is_absent(&error) => return Err(KeyStoreError::NoKey(name.clone())),
            result => result?,
        };
        if found != *name {
            return Err(damaged(&path, format!("it holds the key {found}")));
        }
        Ok(key)
    }

    /// Adds a certificate, or replaces one of the same name. Its key need not
    /// be here.
    ///
    /// # Errors
    /// If its key is here and is another one, or it cannot be written.
    pub fn add_certificate(&self, certificate: &Certificate) -> Result<()> {
        let mismatch = match self.key(&certificate.key_name().to_name()) {
            Ok(key) => !certificate.certifies(&key),
            Err(KeyStoreError::NoKey(_)) => false,
            Err(error) => return Err(error),
        };
        if mismatch {
            return Err(KeyStoreError::Mismatch(certificate.name().clone()));
        }
        let _lock = self.lock()?;
        let path = self.certificate_path(certificate.name());
        self.write(&path, certificate.to_base64().as_bytes(), 0o644)
    }

    /// The certificate of this name.
    ///
    /// # Errors
    /// If it is not here, or its file is damaged.
    pub fn certificate(&self, name: &Name) -> Result<Certificate> {
        let path = self.certificate_path(name);
        let found = match read_certificate(&path) {
            Err(error) if is_absent(&error) => {
                return Err(KeyStoreError::NoCertificate(name.clone()));
            }
            result => result?,
        };
        if found.name() != name {
            return Err(damaged(&path, format!("it holds {}", found.name())));
        }
        Ok(found)
    }

    /// The default identity.
    ///
    /// # Errors
    /// If there is none.
    pub fn default_identity(&self) -> Result<Name> {
        let entry = self.list()?.identities.into_iter().find(|i| i.is_default);
        entry
            .map(|identity| identity.name)
            .ok_or_else(|| KeyStoreError::Empty(self.dir.clone()))
    }

    /// The default key of `identity`.
    ///
    /// # Errors
    /// If there is none.
    pub fn default_key(&self, identity: &Name) -> Result<Name> {
        Ok(self.default_key_entry(identity)?.name)
    }

    /// The default certificate of a key; `None` if the key has no certificate.
    ///
    /// # Errors
    /// If the key is not here.
    pub fn default_certificate(&self, key_name: &Name) -> Result<Option<Certificate>> {
        let no_key = || KeyStoreError::NoKey(key_name.clone());
        let keys = self.list()?.identities.into_iter().flat_map(|i| i.keys);
        let entry = { keys }
            .find(|key| key.name == *key_name)
            .ok_or_else(no_key)?;
        let default = entry.certificates.into_iter().find(|c| c.is_default);
        Ok(default.map(|entry| entry.certificate))
    }

    /// Makes `identity` the default.
    ///
    /// # Errors
    /// If it is not here, or cannot be written.
    pub fn set_default_identity(&self, identity: &Name) -> Result<()> {
        self.default_key_entry(identity)?;
        self.change_defaults(|defaults| defaults.identity = Some(identity.clone()))
    }

    /// Makes a key the default of its identity.
    ///
    /// # Errors
    /// If it is not here, or cannot be written.
    pub fn set_default_key(&self, key_name: &Name) -> Result<()> {
        self.key(key_name)?;
        let identity = identity_of_key(key_name.view())
            .ok_or_else(|| KeyStoreError::BadKeyName(key_name.clone()))?;
        self.change_defaults(|defaults| {
            defaults.keys.insert(identity.to_name(), key_name.clone());
        })
    }

    /// Makes a certificate the default of its key.
    ///
    /// # Errors
    /// If it is not here, or cannot be written.
    pub fn set_default_certificate(&self, name: &Name) -> Result<()> {
        let key_name = self.certificate(name)?.key_name().to_name();
        self.change_defaults(|defaults| {
            defaults.certificates.insert(key_name, name.clone());
        })
    }

    /// Deletes an identity with its keys and their certificates.
    ///
    /// # Errors
    /// If it is not here, or cannot be deleted.
    pub fn delete_identity(&self, identity: &Name) -> Result<()> {
        let entries = self.list()?.identities;
        let entry = entries.into_iter().find(|entry| entry.name == *identity);
        let entry = entry.ok_or_else(|| KeyStoreError::NoIdentity(identity.clone()))?;
        entry
            .keys
            .iter()
            .try_for_each(|key| self.delete_key(&key.name))
    }

    /// Deletes a key with its certificates.
    ///
    /// # Errors
    /// If it is not here, or cannot be deleted.
    pub fn delete_key(&self, name: &Name) -> Result<()> {
        let path = self.key_path(name);
        if !path.exists() {
            return Err(KeyStoreError::NoKey(name.clone()));
        }
        let certificates = self.list()?.identities.into_iter();
        let entry = { certificates }
            .flat_map(|identity| identity.keys)
            .find(|key| key.name == *name);
        for entry in entry.into_iter().flat_map(|key| key.certificates) {
            self.delete_certificate(entry.certificate.name())?;
        }
        self.delete(&path)
    }

    /// Deletes a certificate.
    ///
    /// # Errors
    /// If it is not here, or cannot be deleted.
    pub fn delete_certificate(&self, name: &Name) -> Result<()> {
        let path = self.certificate_path(name);
        if !path.exists() {
            return Err(KeyStoreError::NoCertificate(name.clone()));
        }
        self.delete(&path)
    }

    /// A signer by the default key of `identity`, or of the default identity.
    /// Its key locator is the name of the default certificate, or of the key
    /// if that has none.
    ///
    /// # Errors
    /// If there is no such key, or its file is damaged.
    pub fn signer(&self, identity: Option<&Name>) -> Result<Signer> {
        let identity = match identity {
            Some(identity) => identity.clone(),
            None => self.default_identity()?,
        };
        let entry = self.default_key_entry(&identity)?;
        let default = entry.certificates.iter().find(|c| c.is_default);
        let locator = default.map_or(&entry.name, |entry| entry.certificate.name());
        Ok(Signer::named(self.key(&entry.name)?, locator.clone()))
    }

    /// Adds the key and the certificate of a SafeBag; returns the key's name.
    ///
    /// # Errors
    /// If the password is wrong, another key of this name is here, or files
    /// cannot be written.
    pub fn import(&self, bag: &SafeBag, password: &[u8]) -> Result<Name> {
        let key = bag.open(password)?;
        let name = bag.certificate().key_name().to_name();
        match self.add_key(&name, &key) {
            // Another certificate of a key that is here already.
            Err(KeyStoreError::Exists(_)) if bag.certificate().certifies(&self.key(&name)?) => {}
            result => result?,
        }
        self.add_certificate(bag.certificate())?;
        Ok(name)
    }

    /// A certificate and its key as a SafeBag under `password`.
    ///
    /// # Errors
    /// If one of them is not here.
    pub fn export(&self, certificate_name: &Name, password: &[u8]) -> Result<SafeBag> {
        let certificate = self.certificate(certificate_name)?;
        let key = self.key(&certificate.key_name().to_name())?;
        Ok(SafeBag::seal(certificate, &key, password)?)
    }

    fn default_key_entry(&self, identity: &Name) -> Result<KeyEntry> {
        let entries = self.list()?.identities;
        let entry = entries.into_iter().find(|entry| entry.name == *identity);
        let keys = entry.map(|entry| entry.keys).unwrap_or_default();
        let default = keys.into_iter().find(|key| key.is_default);
        default.ok_or_else(|| KeyStoreError::NoIdentity(identity.clone()))
    }

    fn key_path(&self, name: &Name) -> PathBuf {
        self.dir.join(KEYS).join(file_name(name, KEY_SUFFIX))
    }

    fn certificate_path(&self, name: &Name) -> PathBuf {
        self.dir.join(CERTS).join(file_name(name, CERT_SUFFIX))
    }

    /// Files of this suffix in a directory, in order of their names.
    fn files(&self, dir: &str, suffix: &str) -> Result<Vec<PathBuf>> {
        let dir = self.dir.join(dir);
        let failed = || io_error("read directory", &dir);
        let mut paths = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let is_ours = path.extension().is_some_and(|found| found == suffix)
                && path
                    .file_stem()
                    .and_then(|stem| stem.to_str())
                    .is_some_and(is_hash);
            if is_ours {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    fn read_defaults(&self) -> Result<Defaults> {
        let path = self.dir.join(DEFAULTS);
        let content = match read_file(&path) {
            Err(error) if is_absent(&error) => return Ok(Defaults::default()),
            result => result?,
        };
        let mut defaults = Defaults::default();
        for line in content.lines() {
            // What is not understood was written by a later version.
            let Some((kind, uri)) = line.split_once(' ') else {
                continue;
            };
            let Ok(name) = uri.trim().parse::<Name>() else {
                continue;
            };
            match kind {
                "identity" => defaults.identity = Some(name),
                "key" => {
                    if let Some(identity) = identity_of_key(name.view()) {
                        defaults.keys.insert(identity.to_name(), name);
                    }
                }
                "certificate" if is_certificate_name(name.view()) => {
                    let key_name = name.prefix(name.len() - 2).to_name();
                    defaults.certificates.insert(key_name, name);
                }
                _ => {}
            }
        }
        Ok(defaults)
    }

    fn change_defaults(&self, change: impl FnOnce(&mut Defaults)) -> Result<()> {
        let _lock = self.lock()?;
        let mut defaults = self.read_defaults()?;
        change(&mut defaults);
        let mut content = String::new();
        let mut line = |kind: &str, name: &Name| content.push_str(&format!("{kind} {name}\n"));
        defaults
            .identity
            .iter()
            .for_each(|name| line("identity", name));
        defaults.keys.values().for_each(|name| line("key", name));
        let certificates = defaults.certificates.values();
        certificates.for_each(|name| line("certificate", name));
        self.write(&self.dir.join(DEFAULTS), content.as_bytes(), 0o644)
    }

    /// Waits until no other process changes the store.
    fn lock(&self) -> Result<File> {
        let path = self.dir.join(LOCK);
        let failed = || io_error("lock", &path);
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let file = options.open(&path).map_err(failed())?;
        file.lock().map_err(failed())?;
        Ok(file)
    }

    /// Writes a file beside its place, and renames it.
    fn write(&self, path: &Path, content: &[u8], mode: u32) -> Result<()> {
        let mut suffix = [0; 8];
        random_bytes(&mut suffix)?;
        let temporary = path.with_extension(format!("tmp-{:016x}", u64::from_ne_bytes(suffix)));
        let result = write_new(&temporary, content, mode)
            .and_then(|()| fs::rename(&temporary, path))
            .and_then(|()| sync_dir(path));
        if result.is_err() {
            // Nothing more can be done about it than to say why it failed.
            let _ = fs::remove_file(&temporary);
        }
        result.map_err(io_error("write", path))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        let _lock = self.lock()?;
        fs::remove_file(path)
            .and_then(|()| sync_dir(path))
            .map_err(io_error("delete", path))
    }
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    // The mode given at creation is subject to the umask; this is not.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

fn sync_dir(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

fn file_name(name: &Name, suffix: &str) -> String {
    let hash = sha256(&[&name.encode()]);
    let hex: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    format!("{hex}.{suffix}")
}

fn is_hash(stem: &str) -> bool {
    stem.len() == 64 && stem.bytes().all(|b| b.is_ascii_hexdigit())
}

fn read_file(path: &Path) -> Result<Zeroizing<String>> {
    let failed = || io_error("read", path);
    let file = File::open(path).map_err(failed())?;
    let mut content = Zeroizing::new(Vec::new());
    let mut limited = file.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut content).map_err(failed())?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(damaged(path, format!("more than {MAX_FILE_BYTES} bytes")));
    }
    match std::str::from_utf8(&content) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(damaged(path, "not a text")),
    }
}

fn read_certificate(path: &Path) -> Result<Certificate> {
    let content = read_file(path)?;
    Certificate::from_base64(&content).map_err(|error| damaged(path, error))
}

fn read_key(path: &Path) -> Result<(Name, SigningKey)> {
    let content = read_file(path)?;
    let uri = content
        .lines()
        .find_map(|line| line.strip_prefix(NAME_HEADER));
    let uri = uri.ok_or_else(|| damaged(path, "it has no line `Key-Name:`"))?;
    let name: Name = uri.trim().parse().map_err(|e| damaged(path, e))?;
    if !is_key_name(name.view()) {
        return Err(damaged(path, format!("{name} is not a key's name")));
    }
    let bad_text = |reason: String| damaged(path, reason);
    let key = if let Some(der) = text::from_pem(PKCS8_LABEL, &content) {
        SigningKey::from_pkcs8(&der.map_err(bad_text)?)
    } else if let Some(secret) = text::from_pem(HMAC_LABEL, &content) {
        SigningKey::hmac(&secret.map_err(bad_text)?)
    } else {
        return Err(damaged(path, "it has no private key in PEM"));
    };
    Ok((name, key.map_err(|error| damaged(path, error))?))
}

fn certificate_entries(
    mut certificates: Vec<Certificate>,
    default: Option<&Name>,
) -> Vec<CertificateEntry> {
    certificates.sort_by(|a, b| a.name().cmp(b.name()));
    let idx = default_idx(&certificates, |found| Some(found.name()) == default);
    let with_idx = certificates.into_iter().enumerate();
    with_idx
        .map(|(i, certificate)| CertificateEntry {
            certificate,
            is_default: i == idx,
        })
        .collect()
}

/// Which of `items` is the default: the one that is set, else the first.
fn default_idx<T>(items: &[T], is_set: impl Fn(&T) -> bool) -> usize {
    items.iter().position(is_set).unwrap_or(0)
}

fn skipped(path: PathBuf, error: &KeyStoreError) -> Skipped {
    Skipped {
        path,
        reason: error.to_string(),
    }
}

fn damaged(path: &Path, reason: impl ToString) -> KeyStoreError {
    KeyStoreError::Damaged {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyStoreError {
    let path = path.to_owned();
    move |error| KeyStoreError::Io {
        action,
        path,
        error,
    }
}

fn is_absent(error: &KeyStoreError) -> bool {
    matches!(error, KeyStoreError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
}
