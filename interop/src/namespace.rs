//! Network namespaces and the links between them.
//!
//! A namespace has no name, but a process that holds it: the kernel removes it,
//! with its devices, when the last process in it has ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Running, in_namespace, output_of};

/// A network namespace: that of a process which does nothing else.
pub struct Namespace(Running);

impl Namespace {
    /// A namespace with nothing but a loopback interface.
    ///
    /// # Panics
    /// If the caller may not make namespaces.
    #[must_use]
    pub fn new() -> Self {
        let mut command = Command::new("unshare");
        // It prints a line when it is inside, and ends with its input.
        command.args(["--net", "sh", "-c", "echo inside; exec cat"]);
        let mut holder = Running::start(&mut command);
        holder.line();
        let space = Self(holder);
        space.ip(&["link", "set", "lo", "up"]);
        space
    }

    /// Where it is to be entered.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    /// Gives `device` one more address, with the length of its network.
    pub fn add_address(&self, address: &str, device: &str) {
        // No other process has it, so there is nothing to wait for.
        let nodad: &[&str] = if address.contains(':') {
            &["nodad"]
        } else {
            &[]
        };
        self.ip(&[&["address", "add", address, "dev", device], nodad].concat());
    }

    /// Takes an address from `device` that [`Namespace::add_address`] gave it.
    pub fn remove_address(&self, address: &str, device: &str) {
        self.ip(&["address", "delete", address, "dev", device]);
    }

    /// Switches `device` on or off; its IPv4 addresses stay.
    pub fn switch(&self, device: &str, is_on: bool) {
        let state = if is_on { "up" } else { "down" };
        self.ip(&["link", "set", device, state]);
    }

    fn ip(&self, arguments: &[&str]) {
        output_of(in_namespace(Some(&self.path()), Path::new("ip")).args(arguments));
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::new()
    }
}

/// Name of the device of each end of a link.
pub const DEVICES: [&str; 2] = ["left", "right"];

/// Joins two namespaces by a pair of virtual Ethernet devices with these
/// addresses, each with the length of its network. A namespace may be the left
/// end of one link and the right end of one.
pub fn connect(left: &Namespace, left_ip: &str, right: &Namespace, right_ip: &str) {
    let [to_right, to_left] = DEVICES;
    let holder = right.0.id().to_string();
    left.ip(&[
        "link", "add", to_right, "type", "veth", "peer", "name", to_left, "netns", &holder,
    ]);
    for (space, device, address) in [(left, to_right, left_ip), (right, to_left, right_ip)] {
        space.add_address(address, device);
        space.ip(&["link", "set", device, "up"]);
    }
}
