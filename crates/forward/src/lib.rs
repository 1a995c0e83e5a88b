//! The NDN forwarding engine and its strategies, without I/O.
