//! The Tachonym router and its tools.
