//! How the tools print: columns, durations, byte counts, dates, known numbers.

use std::time::Duration;

use tachonym_packet::types::signature_type as typ;

/// Rows as columns of equal width, two spaces apart; the last is not padded.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns)
        .map(|i| {
            let cells = rows.iter().filter_map(|row| row.get(i));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// `3 d 4 h`, `4 h 5 min`, `5 min 6 s`, `6 s`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A time of some milliseconds or seconds: `50 ms`, `4 s`, `1.5 s`.
pub(super) fn short_duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ ..1000 => format!("{ms} ms"),
        _ => format!("{} s", duration.as_secs_f64()),
    }
}

/// A count of bytes with a decimal prefix.
pub(super) fn bytes(n_bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = n_bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n_bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A number of segments.
pub(super) fn segments(n: u64) -> String {
    match n {
        1 => "1 segment".to_owned(),
        n => format!("{n} segments"),
    }
}

/// Milliseconds since the Unix epoch as date and time, UTC.
pub(super) fn date(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
    match time::OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(t) => format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
            t.year(),
            u8::from(t.month()),
            t.day(),
            t.hour(),
            t.minute(),
            t.second()
        ),
        Err(_) => format!("{unix_ms} ms"),
    }
}

/// A number with the name that it has among `names`, if it has one.
pub(super) fn named(number: u64, names: &[(u64, &str)]) -> String {
    match names.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => format!("{name} ({number})"),
        None => number.to_string(),
    }
}

/// A SignatureType by its name in the packet format.
pub(super) fn signature_type(number: u64) -> String {
    named(
        number,
        &[
            (typ::DIGEST_SHA256, "DigestSha256"),
            (typ::SHA256_WITH_RSA, "SignatureSha256WithRsa"),
            (typ::SHA256_WITH_ECDSA, "SignatureSha256WithEcdsa"),
            (typ::HMAC_WITH_SHA256, "SignatureHmacWithSha256"),
            (typ::ED25519, "SignatureEd25519"),
            (typ::NULL, "NullSignature"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bbb"], ["cccc", "d"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(columns(&rows), "a     bbb\ncccc  d\n");
        assert_eq!(columns(&[]), "");
    }

    #[test]
    fn amounts_have_fitting_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(100_000_000), "100.0 MB");
        assert_eq!(short_duration(Duration::from_millis(50)), "50 ms");
        assert_eq!(short_duration(Duration::from_secs(4)), "4 s");
        assert_eq!(short_duration(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(duration(Duration::from_secs(59)), "59 s");
        assert_eq!(duration(Duration::from_secs(3700)), "1 h 1 min");
        assert_eq!(duration(Duration::from_secs(90_000)), "1 d 1 h");
        assert_eq!(date(1_000_000_000_000), "2001-09-09 01:46:40 UTC");
    }
}
