//! The time span of a certificate.
//!
//! Owns the calendar: the wire holds UTC as `YYYYMMDDThhmmss` (NDN Certificate
//! Format Version 2, section "Signature Info"), everything else here is seconds
//! since the Unix epoch. Reads no clock.

use std::fmt;

use tachonym_packet::ValidityPeriod;
use time::{Date, Month, PrimitiveDateTime, Time, UtcDateTime};

/// A validity period holds no point in time: it has a thirteenth month, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the validity period must be two dates of the form YYYYMMDDThhmmss")]
pub struct ValidityError;

/// When a certificate holds: both ends included, in seconds since the Unix
/// epoch. A span whose end is before its start is never valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    /// First second at which it holds.
    pub not_before_s: i64,
    /// Last second at which it holds.
    pub not_after_s: i64,
}

impl Validity {
    /// Always valid, as far as the format goes: 1970 to the end of 9999.
    pub const FOREVER: Self = Self {
        not_before_s: 0,
        not_after_s: 253_402_300_799,
    };

    /// From `wall_ms` on (rounded down to its second) for `n_days` days.
    #[must_use]
    pub fn days_from(wall_ms: u64, n_days: u32) -> Self {
        let start_s = i64::try_from(wall_ms / 1000).unwrap_or(Self::FOREVER.not_after_s);
        Self {
            not_before_s: start_s,
            not_after_s: start_s.saturating_add(i64::from(n_days) * 86_400),
        }
    }

    /// Reads the wire's dates.
    ///
    /// # Errors
    /// If they are no dates of the calendar.
    pub fn from_wire(period: &ValidityPeriod) -> Result<Self, ValidityError> {
        Ok(Self {
            not_before_s: parse_time(&period.not_before).ok_or(ValidityError)?,
            not_after_s: parse_time(&period.not_after).ok_or(ValidityError)?,
        })
    }

    /// The wire's form. What lies outside the years 0 to 9999 is moved to the
    /// nearest date inside.
    #[must_use]
    pub fn to_wire(&self) -> ValidityPeriod {
        ValidityPeriod {
            not_before: format_time(self.not_before_s),
            not_after: format_time(self.not_after_s),
        }
    }

    /// Whether it holds at `wall_ms`, milliseconds since the Unix epoch.
    #[must_use]
    pub fn contains(&self, wall_ms: u64) -> bool {
        let wall_s = i64::try_from(wall_ms / 1000).unwrap_or(i64::MAX);
        (self.not_before_s..=self.not_after_s).contains(&wall_s)
    }

    /// The span that lies in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self {
            not_before_s: self.not_before_s.max(other.not_before_s),
            not_after_s: self.not_after_s.min(other.not_after_s),
        }
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = self.to_wire();
        let [from, to] = [&period.not_before, &period.not_after].map(|t| t.map(char::from));
        from.iter().try_for_each(|c| write!(f, "{c}"))?;
        f.write_str(" to ")?;
        to.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

fn parse_time(text: &[u8; 15]) -> Option<i64> {
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_u16, |sum, b| {
            b.is_ascii_digit().then(|| sum * 10 + u16::from(b - b'0'))
        })
    };
    let small = |from, to| number(from, to).and_then(|n| u8::try_from(n).ok());
    if text[8] != b'T' {
        return None;
    }
    let month = Month::try_from(small(4, 6)?).ok()?;
    let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, small(6, 8)?).ok()?;
    // A leap second, which no clock here counts, is the second before it.
    let second = small(13, 15)?;
    let second = if second == 60 { 59 } else { second };
    let time = Time::from_hms(small(9, 11)?, small(11, 13)?, second).ok()?;
    Some(PrimitiveDateTime::new(date, time).as_utc().unix_timestamp())
}

fn format_time(unix_s: i64) -> [u8; 15] {
    /// 0000-01-01T00:00:00Z.
    const FIRST_S: i64 = -62_167_219_200;
    let clamped_s = unix_s.clamp(FIRST_S, Validity::FOREVER.not_after_s);
    let at = UtcDateTime::from_unix_timestamp(clamped_s).unwrap_or(UtcDateTime::UNIX_EPOCH);
    let text = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    let mut out = *b"00000101T000000";
    if text.len() == out.len() {
        out.copy_from_slice(text.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn period(not_before: &[u8; 15], not_after: &[u8; 15]) -> ValidityPeriod {
        ValidityPeriod {
            not_before: *not_before,
            not_after: *not_after,
        }
    }

    #[test]
    fn both_ends_belong_to_the_span() {
        let wire = period(b"20150814T223739", b"20150818T223738");
        let validity = Validity::from_wire(&wire).expect("dates");
        assert_eq!(validity.not_before_s, 1_439_591_859);
        assert_eq!(validity.to_wire(), wire);
        assert!(!validity.contains(1_439_591_858_999));
        assert!(validity.contains(1_439_591_859_000));
        assert!(validity.contains(1_439_937_458_999));
        assert!(!validity.contains(1_439_937_459_000));
    }

    #[test]
    fn dates_outside_the_calendar_are_refused() {
        let good = b"20200101T000000";
        for bad in [
            b"20201301T000000",
            b"20200230T000000",
            b"20200101T240000",
            b"20200101T006000",
            b"20200101x000000",
            b"2020010aT000000",
        ] {
            assert!(Validity::from_wire(&period(bad, good)).is_err());
            assert!(Validity::from_wire(&period(good, bad)).is_err());
        }
    }

    #[test]
    fn the_ends_of_the_calendar_are_dates() {
        let wire = Validity::FOREVER.to_wire();
        assert_eq!(wire, period(b"19700101T000000", b"99991231T235959"));
        assert_eq!(Validity::from_wire(&wire), Ok(Validity::FOREVER));
        let beyond = Validity {
            not_before_s: i64::MIN,
            not_after_s: i64::MAX,
        };
        assert_eq!(
            beyond.to_wire(),
            period(b"00000101T000000", b"99991231T235959")
        );
    }

    proptest! {
        #[test]
        fn seconds_survive_the_wire(a in -62_167_219_200..253_402_300_800_i64, b in 0..253_402_300_800_i64) {
            let validity = Validity { not_before_s: a, not_after_s: b };
            prop_assert_eq!(Validity::from_wire(&validity.to_wire()), Ok(validity));
        }

        #[test]
        fn any_fifteen_bytes_are_read_or_refused(bytes: [u8; 15]) {
            let _ = Validity::from_wire(&period(&bytes, &bytes));
        }
    }
}
