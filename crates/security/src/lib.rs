//! Signing, verification, certificates and key storage for NDN packets.
