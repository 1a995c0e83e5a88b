//! NDN Packet Format 0.3 and NDNLPv2 as checked views and owned values.
