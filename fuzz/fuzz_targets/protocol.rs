//! Values of the management protocol and RDR metadata: what decodes encodes to
//! something that decodes to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_protocol::rdr::Metadata;
use tachonym_protocol::{
    ChannelStatus, CommandName, ControlParameters, ControlResponse, CsInfo, DropCount,
    FaceEventNotification, FaceQueryFilter, FaceStatus, FibEntry, ForwarderStatus, RibEntry,
    StrategyChoice, TableMemory, WorkersStatus,
};

macro_rules! round_trip {
    ($bytes:expr; $($value:ty),+) => {$(
        if let Ok(value) = <$value>::decode($bytes) {
            assert_eq!(<$value>::decode(&value.encode()).expect("own encoding"), value);
        }
    )+};
}

macro_rules! round_trip_list {
    ($bytes:expr; $($value:ty),+) => {$(
        if let Ok(values) = <$value>::decode_list($bytes) {
            let again = <$value>::encode_list(&values);
            assert_eq!(<$value>::decode_list(&again).expect("own encoding"), values);
        }
    )+};
}

fuzz_target!(|bytes: &[u8]| {
    round_trip!(bytes; ControlParameters, ControlResponse, FaceQueryFilter, CsInfo);
    round_trip!(bytes; FaceEventNotification, Metadata, TableMemory, WorkersStatus);
    round_trip_list!(bytes; FaceStatus, ChannelStatus, FibEntry, RibEntry, StrategyChoice, DropCount);
    let _ = ForwarderStatus::decode_value(bytes);
    if let Ok(name) = tachonym_packet::NameView::parse_value(bytes) {
        let _ = CommandName::parse(name);
        let _ = tachonym_protocol::rdr::object_of_metadata(name);
    }
});
