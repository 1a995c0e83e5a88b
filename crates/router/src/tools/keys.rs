//! `tachonym keys`: identities, keys and certificates.
//!
//! Certificates and SafeBags are read and written in base64, the form that
//! `ndnsec` uses, so that keys can move between both.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use tachonym_client::wall_ms;
use tachonym_packet::{Component, Name};
use tachonym_security::{
    Certificate, CertificateRequest, KeyStore, RsaBits, SafeBag, SigningKey, Validity,
    VerifyingKey, is_key_name,
};
use zeroize::Zeroizing;

use super::failure::Failure;
use super::{COMMON, default_key_store, name, output, text};

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tachonym keys generate /example/operator
  tachonym keys certificate /example/operator > operator.ndncert
  tachonym keys issue request.ndncert --by /example/operator > issued.ndncert
  tachonym keys list";

/// Manage identities, keys and certificates.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folder of the key store.
    #[arg(long, visible_alias = "store", value_name = "DIR", global = true, help_heading = COMMON)]
    key_store: Option<PathBuf>,
    /// Print JSON for scripts.
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List identities, keys and certificates; `*` marks defaults.
    List,
    /// Generate a key for an identity, with a self-signed certificate.
    Generate {
        /// The identity.
        #[arg(value_parser = name::parse)]
        identity: Name,
        /// Kind of the key.
        #[arg(long = "type", value_enum, default_value_t = Type::Ecdsa, value_name = "KIND")]
        typ: Type,
    },
    /// Print a certificate in base64, of an identity, key or certificate name. Another
    /// identity signs it with `issue`.
    #[command(visible_alias = "request")]
    Certificate {
        /// Name of the identity, key or certificate.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Show the content of a certificate.
    Show {
        /// File of the certificate, or `-`; or a name in the key store.
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        certificate: String,
    },
    /// Issue a certificate for the key of another certificate.
    #[command(visible_alias = "sign")]
    Issue {
        /// File of the certificate with the key to certify, or `-`.
        request: PathBuf,
        /// Identity that signs; the default one if not given.
        #[arg(long, value_name = "NAME", value_parser = name::parse)]
        by: Option<Name>,
        /// Validity of the new certificate, in days.
        #[arg(long, default_value_t = 365, value_name = "N")]
        days: u32,
        /// Issuer, as a name component of the new certificate.
        #[arg(long, default_value = "NA", value_name = "TEXT")]
        issuer_id: String,
    },
    /// Add a certificate to the key store.
    Install {
        /// File of the certificate, or `-`.
        file: PathBuf,
    },
    /// Check that one certificate was signed by the key of another.
    Verify {
        /// File of the certificate, or `-`.
        certificate: PathBuf,
        /// File of the certificate of the expected signer, or `-`.
        #[arg(long, value_name = "FILE")]
        issuer: PathBuf,
    },
    /// Make an identity, key or certificate the default.
    Default {
        /// Its name.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Delete an identity, key or certificate.
    Delete {
        /// Its name.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Print a certificate and its private key, encrypted, as a SafeBag in
    /// base64.
    Export {
        /// Name of the identity, key or certificate.
        #[arg(value_parser = name::parse)]
        name: Name,
        /// File whose first line is the password, or `-`; asked for if not given.
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Add the certificate and private key of a SafeBag.
    Import {
        /// File of the SafeBag, or `-`.
        file: PathBuf,
        /// File whose first line is the password, or `-`; asked for if not given.
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Type {
    /// ECDSA on P-256.
    Ecdsa,
    /// RSA, 2048 bits.
    Rsa,
    /// Ed25519.
    Ed25519,
    /// A shared secret for HMAC.
    Hmac,
}

/// Runs it.
///
/// # Errors
/// If the key store refuses, or what is read makes no sense.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = match &arguments.key_store {
        Some(folder) => folder.clone(),
        None => default_key_store()?,
    };
    let store = KeyStore::open(&folder)?;
    let print = |value: Value, text: String| match arguments.json {
        true => output::line(format_args!("{value:#}")),
        false => output::line(text.trim_end()),
    };
    match &arguments.command {
        Command::List => {
            let (value, text) = list(&store)?;
            if text.is_empty() && !arguments.json {
                // What is piped on is as empty as the store.
                output::note(format_args!(
                    "no keys in {}; generate one with `tachonym keys generate /example/me`",
                    folder.display()
                ));
            } else {
                print(value, text)?;
            }
        }
        Command::Generate { identity, typ } => {
            let generate = || match typ {
                Type::Ecdsa => SigningKey::generate_ecdsa(),
                Type::Rsa => SigningKey::generate_rsa(RsaBits::default()),
                Type::Ed25519 => SigningKey::generate_ed25519(),
                Type::Hmac => SigningKey::generate_hmac(),
            };
            let name = store.create_key(identity, generate, wall_ms())?;
            print(json!({ "key": name.to_string() }), name.to_string())?;
        }
        Command::Certificate { name } => {
            let certificate = find_certificate(&store, name)?;
            print(to_json(&certificate), certificate.to_base64())?;
        }
        Command::Show { certificate } => {
            let certificate = match certificate.parse::<Name>() {
                Ok(name) if certificate.starts_with("/") && !Path::new(certificate).exists() => {
                    find_certificate(&store, &name)?
                }
                _ => read_certificate(Path::new(certificate))?,
            };
            print(to_json(&certificate), describe(&certificate))?;
        }
        Command::Issue {
            request,
            by,
            days,
            issuer_id,
        } => {
            let requested = read_certificate(request)?;
            let certificate = CertificateRequest {
                key_name: requested.key_name().to_name(),
                public_key: requested.public_key_der().to_vec(),
                issuer_id: Component::generic(issuer_id),
                version: wall_ms(),
                validity: Validity::days_from(wall_ms(), *days),
            }
            .issue(&store.signer(by.as_ref())?)?;
            print(to_json(&certificate), certificate.to_base64())?;
        }
        Command::Install { file } => {
            let certificate = read_certificate(file)?;
            store.add_certificate(&certificate)?;
            print(to_json(&certificate), certificate.name().to_string())?;
        }
        Command::Verify {
            certificate,
            issuer,
        } => {
            let certificate = read_certificate(certificate)?;
            let issuer = read_certificate(issuer)?;
            let key: VerifyingKey = issuer.verifying_key()?;
            certificate
                .verify(&key)
                .with_context(|| format!("not signed by {}", issuer.key_name()))?;
            if !certificate.is_valid_at(wall_ms()) {
                return Err(Failure::NotValidNow {
                    issuer: issuer.key_name().to_name(),
                    validity: certificate.validity(),
                }
                .into());
            }
            print(
                to_json(&certificate),
                format!("signed by {}", issuer.key_name()),
            )?;
        }
        Command::Default { name } => {
            if Certificate::is_name(name.view()) {
                store.set_default_certificate(name)?;
            } else if is_key_name(name.view()) {
                store.set_default_key(name)?;
            } else {
                store.set_default_identity(name)?;
            }
        }
        Command::Delete { name } => {
            if Certificate::is_name(name.view()) {
                store.delete_certificate(name)?;
            } else if is_key_name(name.view()) {
                store.delete_key(name)?;
            } else {
                store.delete_identity(name)?;
            }
        }
        Command::Export {
            name,
            password_file,
        } => {
            let certificate = find_certificate(&store, name)?;
            let password = password(password_file.as_deref(), Confirm::Yes)?;
            let bag = store.export(certificate.name(), password.as_bytes())?;
            print(
                json!({ "safe_bag": bag.to_base64(), "certificate": certificate.name().to_string() }),
                bag.to_base64(),
            )?;
        }
        Command::Import {
            file,
            password_file,
        } => {
            let bag = SafeBag::from_base64(&read_text(file)?)
                .with_context(|| format!("{} holds no SafeBag", file.display()))?;
            let password = password(password_file.as_deref(), Confirm::No)?;
            let key = store.import(&bag, password.as_bytes())?;
            print(json!({ "key": key.to_string() }), key.to_string())?;
        }
    }
    Ok(())
}

/// The certificate of this name, or the default one of this key or identity.
fn find_certificate(store: &KeyStore, name: &Name) -> anyhow::Result<Certificate> {
    if Certificate::is_name(name.view()) {
        return Ok(store.certificate(name)?);
    }
    let key = match is_key_name(name.view()) {
        true => name.clone(),
        false => store.default_key(name)?,
    };
    store
        .default_certificate(&key)?
        .with_context(|| format!("{key} has no certificate"))
}

/// The certificate in `file`, or in standard input if that is `-`.
pub(super) fn read_certificate(file: &Path) -> anyhow::Result<Certificate> {
    Certificate::from_base64(&read_text(file)?)
        .with_context(|| format!("{} holds no certificate", file.display()))
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let reading = || format!("cannot read {}", file.display());
    if file.as_os_str() == "-" {
        let stdin = std::io::stdin().lock();
        stdin.take(MAX_FILE_BYTES).read_to_string(&mut text)
    } else {
        let opened = std::fs::File::open(file).with_context(reading)?;
        opened.take(MAX_FILE_BYTES).read_to_string(&mut text)
    }
    .with_context(reading)?;
    Ok(text)
}

/// Whether a typed password is repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confirm {
    Yes,
    No,
}

/// A password from a file's first line, or from the terminal, where it is not
/// shown.
fn password(file: Option<&Path>, confirm: Confirm) -> anyhow::Result<Zeroizing<String>> {
    if let Some(file) = file {
        let text = Zeroizing::new(read_text(file)?);
        return Ok(Zeroizing::new(
            text.lines().next().unwrap_or_default().to_owned(),
        ));
    }
    if !std::io::stderr().is_terminal() {
        bail!("cannot ask for a password: standard input is not a terminal; use --password-file");
    }
    let ask = |prompt: &str| -> anyhow::Result<Zeroizing<String>> {
        let typed = rpassword::prompt_password(prompt).context("cannot ask for a password")?;
        Ok(Zeroizing::new(typed))
    };
    let password = ask("Password: ")?;
    if confirm == Confirm::Yes {
        ensure!(ask("Again: ")? == password, "the passwords differ");
    }
    Ok(password)
}

fn list(store: &KeyStore) -> anyhow::Result<(Value, String)> {
    let listing = store.list()?;
    let mark = |is_default: bool| if is_default { "* " } else { "  " };
    let mut text = String::new();
    let mut identities = Vec::new();
    for identity in &listing.identities {
        text.push_str(&format!("{}{}\n", mark(identity.is_default), identity.name));
        let mut keys = Vec::new();
        for key in &identity.keys {
            let kind = format!("{:?}", key.kind).to_lowercase();
            text.push_str(&format!(
                "  {}{} ({kind})\n",
                mark(key.is_default),
                key.name
            ));
            let mut certificates = Vec::new();
            for entry in &key.certificates {
                let certificate = &entry.certificate;
                text.push_str(&format!(
                    "    {}{} ({})\n",
                    mark(entry.is_default),
                    certificate.name(),
                    certificate.validity()
                ));
                let mut value = to_json(certificate);
                value["default"] = entry.is_default.into();
                certificates.push(value);
            }
            keys.push(json!({
                "name": key.name.to_string(),
                "kind": kind,
                "default": key.is_default,
                "certificates": certificates,
            }));
        }
        identities.push(json!({
            "name": identity.name.to_string(),
            "default": identity.is_default,
            "keys": keys,
        }));
    }
    for entry in &listing.other_certificates {
        text.push_str(&format!("  {} (no key)\n", entry.certificate.name()));
    }
    for skipped in &listing.skipped {
        text.push_str(&format!(
            "! {}: {}\n",
            skipped.path.display(),
            skipped.reason
        ));
    }
    let others = listing.other_certificates.iter();
    let value = json!({
        "identities": identities,
        "skipped": listing.skipped.iter().map(|skipped| json!({
            "file": skipped.path.display().to_string(),
            "reason": skipped.reason,
        })).collect::<Vec<_>>(),
        "other_certificates": others.map(|entry| to_json(&entry.certificate)).collect::<Vec<_>>(),
    });
    Ok((value, text))
}

fn describe(certificate: &Certificate) -> String {
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let locator = match certificate.key_locator() {
        Some(tachonym_packet::KeyLocator::Name(name)) => name.to_string(),
        Some(tachonym_packet::KeyLocator::Digest(_)) => "a digest".into(),
        None => "-".into(),
    };
    text::columns(&[
        row("certificate", certificate.name().to_string()),
        row("identity", certificate.identity().to_string()),
        row("valid", certificate.validity().to_string()),
        row(
            "now",
            match certificate.is_valid_at(wall_ms()) {
                true => "valid".into(),
                false => "not valid".into(),
            },
        ),
        row(
            "signed by",
            match certificate.is_self_signed() {
                true => "itself".into(),
                false => locator,
            },
        ),
        row(
            "signature type",
            text::signature_type(certificate.signature_type()),
        ),
        row(
            "public key",
            match certificate.verifying_key() {
                Ok(key) => format!("{:?}", key.kind()).to_lowercase(),
                Err(error) => format!("{:#}", anyhow::Error::new(error)),
            },
        ),
    ])
}

fn to_json(certificate: &Certificate) -> Value {
    json!({
        "name": certificate.name().to_string(),
        "key": certificate.key_name().to_string(),
        "identity": certificate.identity().to_string(),
        "validity": certificate.validity().to_string(),
        "is_valid": certificate.is_valid_at(wall_ms()),
        "is_self_signed": certificate.is_self_signed(),
        "base64": certificate.to_base64(),
    })
}
