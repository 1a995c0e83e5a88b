//! Prefix announcements, as `rib/announce` and Data bring them.
//!
//! Owns the reading of one: a Data that says, signed by the owner of a prefix,
//! that the prefix can be reached by way of its bearer, and for how long. Whether
//! its signer is to be believed is for `authorize`. Source: "Prefix Announcement
//! Protocol", with NFD's name `/<prefix>/32=PA/<version>/<segment 0>`. Its content may
//! have a Cost, of the type that it has in `rib/register`; NFD and ndn-cxx skip that.

use tachonym_packet::tlv::{self, Element};
use tachonym_packet::{DataView, DecodeError, Name, types};
use tachonym_protocol::{COST, EXPIRATION_PERIOD};

/// A well-formed announcement that holds at this time.
#[derive(Clone, Debug)]
pub(crate) struct Announcement<'a> {
    /// What is announced.
    pub(crate) prefix: Name,
    /// Later ones replace earlier ones.
    pub(crate) version: u64,
    /// For how long, in milliseconds from now; at least 1.
    pub(crate) lives_ms: u64,
    /// What the route is to cost, if it says.
    pub(crate) cost: Option<u64>,
    /// The announcement itself.
    pub(crate) data: DataView<'a>,
}

/// Why an announcement is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnnouncementError {
    #[error("the command carries no prefix announcement")]
    Missing,
    #[error("malformed prefix announcement")]
    Malformed(#[from] DecodeError),
    #[error("the Data is not a prefix announcement: its name or its content type is another")]
    NotAnAnnouncement,
    #[error("the prefix announcement has expired or is not valid yet; compare the clocks")]
    Expired,
}

impl<'a> Announcement<'a> {
    /// Reads the announcement in the ApplicationParameters of a command that is
    /// given at `wall_ms`, milliseconds since the Unix epoch.
    pub(crate) fn find(
        parameters: Option<&'a [u8]>,
        wall_ms: u64,
    ) -> Result<Self, AnnouncementError> {
        Self::read(find_data(parameters.unwrap_or_default())?, wall_ms)
    }

    /// Reads the announcement that is the Data `wire`, as [`Self::find`] does.
    pub(crate) fn parse(wire: &'a [u8], wall_ms: u64) -> Result<Self, AnnouncementError> {
        Self::read(DataView::parse(wire)?, wall_ms)
    }

    fn read(data: DataView<'a>, wall_ms: u64) -> Result<Self, AnnouncementError> {
        let name = data.name();
        let prefix_len = name
            .len()
            .checked_sub(3)
            .ok_or(AnnouncementError::NotAnAnnouncement)?;
        let is_named_so = name.get(prefix_len).is_some_and(|keyword| {
            keyword.typ() == types::component::KEYWORD && keyword.value() == b"PA"
        }) && [types::component::VERSION, types::component::SEGMENT]
            .into_iter()
            .zip(prefix_len + 1..)
            .all(|(typ, idx)| {
                let number = name.get(idx).filter(|component| component.typ() == typ);
                number.is_some_and(|component| component.as_number().is_some())
            });
        if data.content_type() != types::content_type::PREFIX_ANNOUNCEMENT || !is_named_so {
            return Err(AnnouncementError::NotAnAnnouncement);
        }
        let version = name.get(prefix_len + 1).and_then(|it| it.as_number());
        let version = version.ok_or(AnnouncementError::NotAnAnnouncement)?;
        let (lives_ms, cost) = terms(data.content(), wall_ms)?;
        Ok(Self {
            prefix: name.prefix(prefix_len).to_name(),
            version,
            lives_ms,
            cost,
            data,
        })
    }
}

/// The Data among the elements of the command's parameters.
fn find_data(parameters: &[u8]) -> Result<DataView<'_>, AnnouncementError> {
    let mut reader = tlv::Reader::new(parameters);
    while !reader.is_empty() {
        let wire = reader.remaining();
        let element = reader.read_element()?;
        if element.typ == types::DATA {
            let len = wire.len() - reader.remaining().len();
            return Ok(DataView::parse(&wire[..len])?);
        }
    }
    Err(AnnouncementError::Missing)
}

/// How long the announcement with this content still holds, in milliseconds, and the cost
/// that it carries, if any.
fn terms(content: &[u8], wall_ms: u64) -> Result<(u64, Option<u64>), AnnouncementError> {
    let mut period = None;
    let mut cost = None;
    let mut until_ms = u64::MAX;
    let mut reader = tlv::Reader::new(content);
    while !reader.is_empty() {
        let element = reader.read_element()?;
        match element.typ {
            EXPIRATION_PERIOD => period = Some(element.nni()?),
            COST => cost = Some(element.nni()?),
            types::VALIDITY_PERIOD => {
                let (from_s, to_s) = validity_s(element)?;
                let now_s = wall_ms / 1000;
                if !(from_s..=to_s).contains(&now_s) {
                    return Err(AnnouncementError::Expired);
                }
                until_ms = to_s.saturating_add(1).saturating_mul(1000);
            }
            typ if tlv::is_critical(typ) => {
                return Err(DecodeError::UnrecognisedCritical { typ }.into());
            }
            _ => {}
        }
    }
    let period = period.ok_or(DecodeError::Missing {
        typ: EXPIRATION_PERIOD,
    })?;
    match period.min(until_ms.saturating_sub(wall_ms)) {
        0 => Err(AnnouncementError::Expired),
        lives_ms => Ok((lives_ms, cost)),
    }
}

/// NotBefore and NotAfter, in seconds since the Unix epoch.
fn validity_s(element: Element<'_>) -> Result<(u64, u64), AnnouncementError> {
    let mut reader = tlv::Reader::new(element.value);
    let mut bound = |typ| -> Result<u64, AnnouncementError> {
        let value = reader.read_expected(typ)?;
        Ok(unix_s(value).ok_or(DecodeError::BadValue { typ })?)
    };
    Ok((bound(types::NOT_BEFORE)?, bound(types::NOT_AFTER)?))
}

/// Seconds since the Unix epoch of `YYYYMMDDThhmmss` in UTC.
fn unix_s(text: &[u8]) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| -> Option<u64> {
        text.get(range)?.iter().try_fold(0, |n, digit| {
            digit
                .is_ascii_digit()
                .then(|| n * 10 + u64::from(digit - b'0'))
        })
    };
    if text.len() != 15 || text[8] != b'T' {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(9..11)?, number(11..13)?, number(13..15)?);
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 0000-03-01, counting years from March so that a leap day comes
    // last in its year.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1;
    const DAYS_UNTIL_1970: u64 = 719_468;
    Some(((days - DAYS_UNTIL_1970) * 24 + hour) * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use tachonym_packet::Data;

    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000; // 2023-11-14T22:13:20Z

    fn content(period_ms: Option<u64>, validity: Option<(&str, &str)>) -> Vec<u8> {
        let mut content = Vec::new();
        if let Some(ms) = period_ms {
            tlv::write_nni(&mut content, EXPIRATION_PERIOD, ms);
        }
        if let Some((from, to)) = validity {
            tlv::write_nested(&mut content, types::VALIDITY_PERIOD, |out| {
                tlv::write_tlv(out, types::NOT_BEFORE, from.as_bytes());
                tlv::write_tlv(out, types::NOT_AFTER, to.as_bytes());
            });
        }
        content
    }

    fn wire(name: &str, content_type: u64, content: Vec<u8>) -> Vec<u8> {
        Data {
            content_type,
            content,
            ..Data::new(name.parse().unwrap())
        }
        .encode_with_digest()
    }

    #[test]
    fn the_cost_is_read_where_there_is_one() {
        let name = "/a/32=PA/v=1/seg=0";
        let mut content = content(Some(1000), None);
        let plain = wire(name, 5, content.clone());
        let cost = |wire: &[u8]| Announcement::parse(wire, NOW_MS).map(|it| it.cost);
        assert_eq!(cost(&plain), Ok(None));
        tlv::write_nni(&mut content, COST, 7);
        assert_eq!(cost(&wire(name, 5, content.clone())), Ok(Some(7)));
        // A number of three bytes is none.
        tlv::write_tlv(&mut content, COST, &[1, 2, 3]);
        assert!(matches!(
            cost(&wire(name, 5, content)),
            Err(AnnouncementError::Malformed(_))
        ));
    }

    fn parse(wire: &[u8]) -> Result<(Name, u64), AnnouncementError> {
        let read = |a: Announcement<'_>| (a.prefix, a.lives_ms);
        let found = Announcement::find(Some(wire), NOW_MS).map(read);
        if !wire.is_empty() && wire[0] == 6 {
            assert_eq!(Announcement::parse(wire, NOW_MS).map(read), found);
        }
        found
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("19700101T000000", 0),
            ("20000229T120000", 951_825_600),
            ("20231114T221320", 1_700_000_000),
            ("20240301T000000", 1_709_251_200),
            ("99991231T235959", 253_402_300_799),
        ] {
            assert_eq!(unix_s(text.as_bytes()), Some(seconds), "{text}");
        }
        for text in [
            "",
            "19691231T235959",
            "20230001T000000",
            "20231114 221320",
            "2023111xT221320",
        ] {
            assert_eq!(unix_s(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn an_announcement_lives_until_its_period_or_its_validity_ends() {
        let name = "/net/site/32=PA/v=1/seg=0";
        let site: Name = "/net/site".parse().unwrap();
        let plain = wire(name, 5, content(Some(3_600_000), None));
        assert_eq!(parse(&plain), Ok((site.clone(), 3_600_000)));
        let short = ("20231114T000000", "20231114T221329");
        let limited = wire(name, 5, content(Some(3_600_000), Some(short)));
        assert_eq!(parse(&limited), Ok((site, 10_000)));
    }

    #[test]
    fn announcements_out_of_their_time_are_refused() {
        let name = "/a/32=PA/v=1/seg=0";
        for validity in [
            ("20231101T000000", "20231114T221319"),
            ("20231114T221321", "20241114T221319"),
        ] {
            let late = wire(name, 5, content(Some(1), Some(validity)));
            assert_eq!(parse(&late), Err(AnnouncementError::Expired));
        }
        let zero = wire(name, 5, content(Some(0), None));
        assert_eq!(parse(&zero), Err(AnnouncementError::Expired));
    }

    #[test]
    fn what_is_no_announcement_is_refused() {
        use AnnouncementError::*;
        let good = || content(Some(1000), None);
        for name in [
            "/32=PA/v=1",
            "/a/PA/v=1/seg=0",
            "/a/32=PA/seg=1/v=0",
            "/a/32=PB/v=1/seg=0",
        ] {
            assert_eq!(
                parse(&wire(name, 5, good())),
                Err(NotAnAnnouncement),
                "{name}"
            );
        }
        let name = "/a/32=PA/v=1/seg=0";
        assert_eq!(parse(&wire(name, 0, good())), Err(NotAnAnnouncement));
        let without_period = Err(Malformed(DecodeError::Missing { typ: 109 }));
        assert_eq!(parse(&wire(name, 5, vec![])), without_period);
        assert_eq!(parse(&[]), Err(Missing));
        assert_eq!(Announcement::find(None, NOW_MS).err(), Some(Missing));
        assert!(matches!(parse(&[6, 1, 7]), Err(Malformed(_))));
    }
}
