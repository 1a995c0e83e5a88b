//! The NFD management protocol, the RIB and command authorisation.
