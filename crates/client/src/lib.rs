//! A small NDN consumer and producer library.
