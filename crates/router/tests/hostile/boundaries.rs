//! Who counts as local, and what a local stream may carry.
