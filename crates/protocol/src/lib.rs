//! Values of the NFD management protocol and of RDR metadata.
