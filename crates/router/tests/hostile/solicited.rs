//! Data that was never asked for, and shares of the SSD level.
