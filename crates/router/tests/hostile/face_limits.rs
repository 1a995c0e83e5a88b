//! What faces cost a peer, and what one peer may hold of everything.
