//! Reading and writing TLV elements.
//!
//! Owns the variable-size numbers, the element head, the NonNegativeInteger and
//! the evolvability rules of NDN Packet Format 0.3 (section "Type-Length-Value
//! Encoding"). It refuses types and lengths that are not in their shortest
//! form, type zero, and elements that end beyond their parent. It knows no
//! element by name: see [`types`](crate::types) for the numbers and the views
//! for their places.

use crate::DecodeError;

/// One element, borrowed from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// TLV-TYPE, 1 or more.
    pub typ: u32,
    /// TLV-VALUE.
    pub value: &'a [u8],
}

/// Whether a decoder that does not recognise `typ`, or meets it out of order,
/// has to refuse the whole: types up to 31 and odd ones are critical.
#[must_use]
pub const fn is_critical(typ: u32) -> bool {
    typ <= 31 || typ & 1 == 1
}

/// A cursor over consecutive elements. After an error its position is
/// unspecified; give up then.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    n_bytes: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the first of `bytes`.
    #[must_use]
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            n_bytes: bytes.len(),
        }
    }

    /// Whether every byte has been read.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Offset of the next byte from the first.
    #[must_use]
    #[inline]
    pub const fn position(&self) -> usize {
        self.n_bytes - self.rest.len()
    }

    /// The bytes not yet read.
    #[must_use]
    #[inline]
    pub const fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a variable-size number in its shortest form.
    ///
    /// # Errors
    /// If the number is cut short or not in its shortest form.
    #[inline]
    pub fn read_var_number(&mut self) -> Result<u64, DecodeError> {
        match self.rest {
            [first @ 0..=252, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*first))
            }
            _ => self.read_long_var_number(),
        }
    }

    fn read_long_var_number(&mut self) -> Result<u64, DecodeError> {
        let Some((&marker, rest)) = self.rest.split_first() else {
            return Err(DecodeError::truncated(1, 0));
        };
        let (number, least, len) = match marker {
            253 => (
                rest.first_chunk()
                    .map(|b| u64::from(u16::from_be_bytes(*b))),
                253,
                2,
            ),
            254 => (
                rest.first_chunk()
                    .map(|b| u64::from(u32::from_be_bytes(*b))),
                1 << 16,
                4,
            ),
            _ => (
                rest.first_chunk().map(|b| u64::from_be_bytes(*b)),
                1 << 32,
                8,
            ),
        };
        let number = number.ok_or_else(|| DecodeError::truncated(1 + len, 1 + rest.len()))?;
        if number < least {
            return Err(DecodeError::NonMinimalNumber);
        }
        self.rest = &rest[len..];
        Ok(number)
    }

    /// Reads a TLV-TYPE.
    ///
    /// # Errors
    /// As [`read_var_number`](Self::read_var_number), and if the type is zero or
    /// does not fit 32 bits.
    #[inline]
    pub fn read_type(&mut self) -> Result<u32, DecodeError> {
        match u32::try_from(self.read_var_number()?) {
            Ok(0) | Err(_) => Err(DecodeError::InvalidType),
            Ok(typ) => Ok(typ),
        }
    }

    /// Reads one element.
    ///
    /// # Errors
    /// If its head is malformed or it ends beyond the bytes; also if there are
    /// no more bytes.
    #[inline]
    pub fn read_element(&mut self) -> Result<Element<'a>, DecodeError> {
        // Nearly all elements have a one-byte type and length.
        if let [typ @ 1..=252, len @ 0..=252, rest @ ..] = self.rest
            && let Some((value, rest)) = rest.split_at_checked(usize::from(*len))
        {
            self.rest = rest;
            let typ = u32::from(*typ);
            return Ok(Element { typ, value });
        }
        let (element, rest) = split_long_element(self.rest)?;
        self.rest = rest;
        Ok(element)
    }

    /// The type of the next element, which stays unread; `None` at the end.
    ///
    /// # Errors
    /// As [`read_type`](Self::read_type).
    pub fn peek_type(&self) -> Result<Option<u32>, DecodeError> {
        if self.is_empty() {
            return Ok(None);
        }
        self.clone().read_type().map(Some)
    }

    /// Reads an element that has to be of type `typ`.
    ///
    /// # Errors
    /// [`DecodeError::Missing`] at the end, [`DecodeError::UnexpectedType`] for
    /// another type, and as [`read_element`](Self::read_element).
    pub fn read_expected(&mut self, typ: u32) -> Result<&'a [u8], DecodeError> {
        if self.is_empty() {
            return Err(DecodeError::Missing { typ });
        }
        let element = self.read_element()?;
        if element.typ != typ {
            return Err(DecodeError::UnexpectedType { found: element.typ });
        }
        Ok(element.value)
    }

    /// Reads the next element if it is of type `typ`; otherwise stays.
    ///
    /// # Errors
    /// As [`read_element`](Self::read_element).
    pub fn read_optional(&mut self, typ: u32) -> Result<Option<&'a [u8]>, DecodeError> {
        if self.peek_type()? == Some(typ) {
            self.read_element().map(|element| Some(element.value))
        } else {
            Ok(None)
        }
    }

    /// Says that everything must have been read.
    ///
    /// # Errors
    /// [`DecodeError::TrailingBytes`] otherwise.
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::trailing(self.remaining().len()))
        }
    }
}

/// Splits the first element off, whatever its size. By value, so that readers of the
/// others keep their place in registers.
#[inline(never)]
fn split_long_element(bytes: &[u8]) -> Result<(Element<'_>, &[u8]), DecodeError> {
    // Contents, and the packets that have one, mostly have a length of three bytes.
    if let [typ @ 1..=252, 253, high, low, rest @ ..] = bytes
        && let len @ 253.. = u16::from_be_bytes([*high, *low])
        && let Some((value, rest)) = rest.split_at_checked(usize::from(len))
    {
        let typ = u32::from(*typ);
        return Ok((Element { typ, value }, rest));
    }
    let mut reader = Reader::new(bytes);
    let typ = reader.read_type()?;
    let len = reader.read_var_number()?;
    let fitting = usize::try_from(len).ok();
    let (value, rest) = fitting
        .and_then(|len| reader.rest.split_at_checked(len))
        .ok_or_else(|| DecodeError::truncated(fitting.unwrap_or(usize::MAX), reader.rest.len()))?;
    Ok((Element { typ, value }, rest))
}

/// Reads `bytes` as exactly one element of type `typ` and returns its value.
///
/// # Errors
/// If it is another type, malformed, cut short or followed by more bytes.
pub fn read_single(bytes: &[u8], typ: u32) -> Result<&[u8], DecodeError> {
    let mut reader = Reader::new(bytes);
    let value = reader.read_expected(typ)?;
    reader.finish()?;
    Ok(value)
}

/// One place in a sequence whose specification fixes the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// An element that may appear once, here.
    Once(u32),
    /// An element that may appear any number of times, here.
    Repeated(u32),
}

/// The fields of a sequence, in its order.
#[derive(Debug)]
pub struct Fields {
    list: &'static [Field],
    /// The ranks of `list` by type, where that is small.
    ranks: [Rank; N_SMALL_TYPES],
    /// Types that are skipped, first and last, though they may be critical.
    skipped: Option<(u32, u32)>,
}

/// The types below it are found by their number: all that packets carry often.
const N_SMALL_TYPES: usize = 64;

/// Place of a field in its sequence, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// 0: it is not in the sequence.
    own: u8,
    /// The lowest rank that may follow.
    next: u8,
}

impl Rank {
    const NONE: Self = Self { own: 0, next: 0 };

    const fn of(typ: u32, list: &[Field]) -> Self {
        let mut idx = 0;
        while idx < list.len() {
            let own = idx as u8 + 1;
            match list[idx] {
                Field::Once(t) if t == typ => return Self { own, next: own + 1 },
                Field::Repeated(t) if t == typ => return Self { own, next: own },
                _ => idx += 1,
            }
        }
        Self::NONE
    }
}

impl Fields {
    /// The fields of `list`.
    ///
    /// # Panics
    /// If there are more than 254.
    #[must_use]
    pub const fn new(list: &'static [Field]) -> Self {
        assert!(list.len() < u8::MAX as usize, "ranks are bytes");
        let mut ranks = [Rank::NONE; N_SMALL_TYPES];
        let mut typ = 0;
        while typ < N_SMALL_TYPES {
            ranks[typ] = Rank::of(typ as u32, list);
            typ += 1;
        }
        Self {
            list,
            ranks,
            skipped: None,
        }
    }

    /// The same, but unrecognised elements of the types from `first` to `last` are skipped
    /// though they may be critical: they are for applications, not for the reader.
    #[must_use]
    pub const fn skipping(mut self, first: u32, last: u32) -> Self {
        self.skipped = Some((first, last));
        self
    }

    /// Whether an element that is not in order may be skipped.
    #[cold]
    #[inline(never)]
    fn check_skipped(&self, typ: u32, rank: Rank) -> Result<(), DecodeError> {
        let is_skipped = |(first, last)| (first..=last).contains(&typ);
        match rank.own {
            _ if !is_critical(typ) => Ok(()),
            0 if self.skipped.is_some_and(is_skipped) => Ok(()),
            0 => Err(DecodeError::UnrecognisedCritical { typ }),
            _ => Err(DecodeError::OutOfOrder { typ }),
        }
    }

    /// Place of the field `typ`.
    #[inline]
    pub(crate) fn rank(&self, typ: u32) -> Rank {
        match self.ranks.get(typ as usize) {
            Some(&rank) => rank,
            None => Rank::of(typ, self.list),
        }
    }
}

/// Reads the elements of a sequence whose order is fixed, by the evolvability
/// rules: recognised elements in order come out; what is unrecognised,
/// repeated or out of order is skipped if its type is non-critical and refused
/// otherwise. Which elements are required is for the caller to check.
#[derive(Clone, Debug)]
pub struct FieldReader<'a, 'f> {
    reader: Reader<'a>,
    fields: &'f Fields,
    next_rank: u8,
}

impl<'a, 'f> FieldReader<'a, 'f> {
    /// Reads `value`, a TLV-VALUE, as `fields` in their order.
    #[must_use]
    #[inline]
    pub const fn new(value: &'a [u8], fields: &'f Fields) -> Self {
        Self {
            reader: Reader::new(value),
            fields,
            next_rank: 1,
        }
    }

    /// Reads what [`split_first_field`] has left of a sequence of `fields`.
    #[inline]
    pub(crate) const fn after_first(rest: &'a [u8], fields: &'f Fields) -> Self {
        Self {
            next_rank: 2,
            ..Self::new(rest, fields)
        }
    }

    /// The next recognised element in order; `None` at the end.
    ///
    /// # Errors
    /// If an element is malformed, or critical and unrecognised or out of order.
    #[inline(always)]
    pub fn read_field(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        while !self.reader.is_empty() {
            let element = self.reader.read_element()?;
            let rank = self.fields.rank(element.typ);
            if rank.own >= self.next_rank {
                self.next_rank = rank.next;
                return Ok(Some(element));
            }
            self.fields.check_skipped(element.typ, rank)?;
        }
        Ok(None)
    }
}

/// The TLV-VALUE of the first field of a sequence and what follows it: the name of a
/// packet, before which not even what could be skipped may come.
///
/// # Errors
/// If another type than `typ` comes first, or nothing.
#[inline]
pub(crate) fn split_first_field(value: &[u8], typ: u32) -> Result<(&[u8], &[u8]), DecodeError> {
    let mut reader = Reader::new(value);
    if reader.is_empty() {
        return Err(DecodeError::Missing { typ });
    }
    let element = reader.read_element()?;
    if element.typ == typ {
        Ok((element.value, reader.remaining()))
    } else {
        Err(DecodeError::Missing { typ })
    }
}

/// Total size in bytes, head included, of the element that begins with
/// `prefix`; `None` while too little of it is there to tell. For framing
/// streams: the size may exceed `prefix` and any limit of the caller's.
///
/// # Errors
/// If the head is malformed, or the size does not fit `usize`.
pub fn element_len(prefix: &[u8]) -> Result<Option<usize>, DecodeError> {
    let mut reader = Reader::new(prefix);
    let head = reader.read_type().and_then(|_| reader.read_var_number());
    match head {
        Ok(len) => usize::try_from(len)
            .ok()
            .and_then(|len| len.checked_add(reader.position()))
            .map(Some)
            .ok_or(DecodeError::PacketTooLarge),
        Err(DecodeError::Truncated { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a NonNegativeInteger: a value of 1, 2, 4 or 8 bytes, big-endian. It
/// need not be in its shortest form.
#[must_use]
#[inline]
pub fn parse_nni(value: &[u8]) -> Option<u64> {
    match *value {
        [a] => Some(u64::from(a)),
        [a, b] => Some(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

impl Element<'_> {
    /// The value as a NonNegativeInteger.
    ///
    /// # Errors
    /// [`DecodeError::BadLength`] unless it is 1, 2, 4 or 8 bytes long.
    #[inline]
    pub fn nni(&self) -> Result<u64, DecodeError> {
        parse_nni(self.value).ok_or(DecodeError::BadLength { typ: self.typ })
    }
}

/// Bytes that `number` takes as a type or length: 1, 3, 5 or 9.
#[must_use]
pub const fn var_number_len(number: u64) -> usize {
    match number {
        0..=252 => 1,
        253..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Bytes that `number` takes as a NonNegativeInteger: 1, 2, 4 or 8.
#[must_use]
pub const fn nni_len(number: u64) -> usize {
    match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Bytes that an element of type `typ` with `value_bytes` of value takes.
#[must_use]
pub const fn tlv_len(typ: u32, value_bytes: usize) -> usize {
    var_number_len(typ as u64) + var_number_len(value_bytes as u64) + value_bytes
}

/// Appends a type or length in its shortest form.
#[inline]
pub fn write_var_number(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    match var_number_len(number) {
        1 => out.push(bytes[7]),
        3 => {
            out.push(253);
            out.extend_from_slice(&bytes[6..]);
        }
        5 => {
            out.push(254);
            out.extend_from_slice(&bytes[4..]);
        }
        _ => {
            out.push(255);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends the head of an element whose `value_bytes` follow.
#[inline]
pub fn write_head(out: &mut Vec<u8>, typ: u32, value_bytes: usize) {
    write_var_number(out, u64::from(typ));
    write_var_number(out, value_bytes as u64);
}

/// Appends a whole element.
#[inline]
pub fn write_tlv(out: &mut Vec<u8>, typ: u32, value: &[u8]) {
    write_head(out, typ, value.len());
    out.extend_from_slice(value);
}

/// Appends the shortest NonNegativeInteger without a head.
#[inline]
pub fn write_nni_value(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    out.extend_from_slice(&bytes[8 - nni_len(number)..]);
}

/// Appends an element whose value is the shortest NonNegativeInteger.
#[inline]
pub fn write_nni(out: &mut Vec<u8>, typ: u32, number: u64) {
    write_head(out, typ, nni_len(number));
    write_nni_value(out, number);
}

/// Appends an element whose value is what `write_value` appends.
pub fn write_nested(out: &mut Vec<u8>, typ: u32, write_value: impl FnOnce(&mut Vec<u8>)) {
    write_var_number(out, u64::from(typ));
    // One byte is set aside for the length; longer values move up.
    let length_at = out.len();
    out.push(0);
    let value_at = out.len();
    write_value(out);
    let value_bytes = out.len() - value_at;
    if let Ok(length @ 0..=252) = u8::try_from(value_bytes) {
        out[length_at] = length;
    } else {
        let mut length = Vec::with_capacity(9);
        write_var_number(&mut length, value_bytes as u64);
        out.splice(length_at..value_at, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn var_numbers_come_back_in_shortest_form() {
        for number in [
            0,
            1,
            252,
            253,
            254,
            255,
            256,
            0xffff,
            0x1_0000,
            0xffff_ffff,
            0x1_0000_0000,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            write_var_number(&mut out, number);
            assert_eq!(out.len(), var_number_len(number));
            let mut reader = Reader::new(&out);
            assert_eq!(reader.read_var_number(), Ok(number));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn nonminimal_numbers_are_rejected() {
        for bytes in [
            &[253, 0, 252][..],
            &[254, 0, 0, 0xff, 0xff],
            &[255, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(
                Reader::new(bytes).read_var_number(),
                Err(DecodeError::NonMinimalNumber)
            );
        }
        assert_eq!(Reader::new(&[253, 0, 253]).read_var_number(), Ok(253));
    }

    #[test]
    fn type_zero_and_types_beyond_32_bits_are_rejected() {
        assert_eq!(
            Reader::new(&[0, 0]).read_element(),
            Err(DecodeError::InvalidType)
        );
        let wide = [255, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        assert_eq!(
            Reader::new(&wide).read_element(),
            Err(DecodeError::InvalidType)
        );
    }

    #[test]
    fn element_beyond_its_parent_is_rejected() {
        assert_eq!(
            Reader::new(&[7, 3, 8, 1]).read_element(),
            Err(DecodeError::Truncated {
                needed_bytes: 3,
                have_bytes: 2
            })
        );
        let huge = [7, 255, 255, 255, 255, 255, 255, 255, 255, 255];
        assert!(Reader::new(&huge).read_element().is_err());
        assert_eq!(element_len(&huge), Err(DecodeError::PacketTooLarge));
    }

    #[test]
    fn stream_framing_waits_for_a_whole_head() {
        assert_eq!(element_len(&[]), Ok(None));
        assert_eq!(element_len(&[100]), Ok(None));
        assert_eq!(element_len(&[100, 253, 1]), Ok(None));
        assert_eq!(element_len(&[100, 253, 1, 0]), Ok(Some(260)));
        assert_eq!(element_len(&[5, 0, 9]), Ok(Some(2)));
        assert_eq!(
            element_len(&[100, 253, 0, 1]),
            Err(DecodeError::NonMinimalNumber)
        );
        assert_eq!(element_len(&[0]), Err(DecodeError::InvalidType));
    }

    #[test]
    fn nni_has_one_two_four_or_eight_bytes() {
        for len in 0..=9 {
            let value = vec![1; len];
            assert_eq!(parse_nni(&value).is_some(), matches!(len, 1 | 2 | 4 | 8));
        }
        for number in [
            0,
            255,
            256,
            65535,
            65536,
            u64::from(u32::MAX),
            1 << 32,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            write_nni(&mut out, 12, number);
            let element = Reader::new(&out).read_element().unwrap();
            assert_eq!(element.nni(), Ok(number));
            assert_eq!(element.value.len(), nni_len(number));
        }
    }

    #[test]
    fn nested_elements_get_their_length_whatever_its_size() {
        for len in [0, 1, 252, 253, 65535, 65536] {
            let value = vec![9; len];
            let mut plain = Vec::new();
            write_tlv(&mut plain, 300, &value);
            let mut nested = vec![];
            write_nested(&mut nested, 300, |out| out.extend_from_slice(&value));
            assert_eq!(plain, nested);
            assert_eq!(plain.len(), tlv_len(300, len));
        }
    }

    #[test]
    fn out_of_order_fields_follow_the_evolvability_rules() {
        static FIELDS: Fields =
            Fields::new(&[Field::Once(40), Field::Repeated(42), Field::Once(41)]);
        let read = |bytes: &[u8]| -> Result<Vec<u32>, DecodeError> {
            let mut reader = FieldReader::new(bytes, &FIELDS);
            let mut types = Vec::new();
            while let Some(element) = reader.read_field()? {
                types.push(element.typ);
            }
            Ok(types)
        };
        assert_eq!(
            read(&[40, 0, 42, 0, 42, 0, 41, 0]),
            Ok(vec![40, 42, 42, 41])
        );
        // Non-critical: a late or repeated 40 and an unknown 44 are skipped.
        assert_eq!(read(&[42, 0, 40, 0, 44, 0]), Ok(vec![42]));
        assert_eq!(read(&[40, 0, 40, 0]), Ok(vec![40]));
        // Critical: a repeated 41, an unknown 43 and an unknown 20 are refused.
        assert_eq!(
            read(&[41, 0, 41, 0]),
            Err(DecodeError::OutOfOrder { typ: 41 })
        );
        assert_eq!(
            read(&[43, 0]),
            Err(DecodeError::UnrecognisedCritical { typ: 43 })
        );
        assert_eq!(
            read(&[20, 0]),
            Err(DecodeError::UnrecognisedCritical { typ: 20 })
        );
    }
}
