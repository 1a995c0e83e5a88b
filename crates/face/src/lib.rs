//! Faces: the NDNLPv2 link service over Unix, UDP, TCP and WebSocket transports.
