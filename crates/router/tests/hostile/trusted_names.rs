//! What a trusted signer may speak for, and replays.
