//! How far names may go.

/// How far packets of a name may go, by its first component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameScope {
    /// Under `/localhost`: among applications on one host.
    Localhost,
    /// Under `/localhop`: over one hop.
    Localhop,
    /// Any other name: anywhere.
    Global,
}
