//! FIB, PIT, content store and dead nonce list.
