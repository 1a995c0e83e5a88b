//! The configuration: any text is a configuration or a list of complaints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_router::config::Config;

fuzz_target!(|text: &str| {
    if let Err(complaints) = Config::parse(text) {
        assert!(!complaints.is_empty());
    }
});
