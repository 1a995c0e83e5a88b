//! Packets at the edge of the specifications, and what becomes of them.
