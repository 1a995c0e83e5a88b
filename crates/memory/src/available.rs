//! How much memory this process may still take, as the kernel tells it.
//!
//! Figures that cannot be read (another system, no `/proc`) set no bound: the
//! mapping itself may still be refused.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::error::Limit;
use crate::pages::PageSize;

/// Where control groups of either version are mounted.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// Addresses that a process has on 64-bit x86 and ARM, where nothing limits it.
const PROCESS_ADDRESSES: u64 = 1 << 47;

/// Bytes that may still be had, and what bounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) bytes: u64,
    pub(crate) limit: Limit,
}

impl Available {
    fn within(self, bytes: u64, limit: Limit) -> Self {
        if bytes < self.bytes {
            Self { bytes, limit }
        } else {
            self
        }
    }
}

/// Bytes of memory that this process may still take: the least of what the
/// machine has available (`MemAvailable`), what the limits of its control
/// groups leave, and what its limit of address space leaves. Huge pages of the kernel's pool are none of it; see
/// [`available_huge_bytes`].
pub fn available_bytes() -> u64 {
    available_memory().bytes.min(available_address_space())
}

/// Bytes of huge pages that lie free in the kernel's pool: none for the sizes
/// that have no pool.
pub fn available_huge_bytes(size: PageSize) -> u64 {
    let kib: u64 = match size {
        PageSize::Base | PageSize::Transparent => return 0,
        PageSize::Huge2M => 2 << 10,
        PageSize::Huge1G => 1 << 20,
    };
    let pool = PathBuf::from(format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB"));
    let read = |name| number_in(&pool.join(name)).unwrap_or(0);
    let n_free = read("free_hugepages").saturating_sub(read("resv_hugepages"));
    n_free.saturating_mul(kib << 10)
}

/// What may be used of memory that is mapped already.
pub(crate) fn available_memory() -> Available {
    let everything = Available {
        bytes: u64::MAX,
        limit: Limit::Machine,
    };
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| kib_of(&text, "MemAvailable:"));
    let group = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|groups| left_by_groups(Path::new(CGROUP_ROOT), &groups));
    everything
        .within(machine.unwrap_or(u64::MAX), Limit::Machine)
        .within(group.unwrap_or(u64::MAX), Limit::ControlGroup)
}

/// Bytes of addresses that this process may still reserve (`RLIMIT_AS`), of those that
/// processors have.
pub fn available_address_space() -> u64 {
    let limit = getrlimit(Resource::As).current;
    let limit = limit.unwrap_or(u64::MAX).min(PROCESS_ADDRESSES);
    let used = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|text| kib_of(&text, "VmSize:"));
    limit.saturating_sub(used.unwrap_or(0))
}

/// Whether the kernel uses transparent huge pages where it is asked to.
pub(crate) fn has_transparent_pages() -> bool {
    fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|text| text.contains("[always]") || text.contains("[madvise]"))
}

/// The figure after `key` in a file of the form of `/proc/meminfo`, in bytes.
fn kib_of(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

fn number_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// What the groups that `/proc/self/cgroup` lists leave, with those that they
/// lie in; `None` if none sets a limit.
fn left_by_groups(root: &Path, groups: &str) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let is_v2 = controllers.is_empty();
        let mounts: &[&str] = match controllers.split(',').any(|name| name == "memory") {
            _ if is_v2 => &["", "unified"],
            true => &["memory"],
            false => &[],
        };
        for mount in mounts {
            let mount = root.join(mount);
            let group = Path::new(group.trim_start_matches('/'));
            // A container may see only its own group, mounted as the root. A
            // group named by `..` lies outside of what is seen.
            for folder in group.ancestors().filter(|path| !path.starts_with("..")) {
                let folder = mount.join(folder);
                let left = if is_v2 {
                    left_by_group_v2(&folder)
                } else {
                    left_by_group_v1(&folder)
                };
                if let Some(left) = left {
                    least = Some(least.map_or(left, |least: u64| least.min(left)));
                }
            }
        }
    }
    least
}

/// What a group of version 2 leaves: beyond `memory.high` it would be slowed
/// down to a stand, beyond `memory.max` killed.
fn left_by_group_v2(folder: &Path) -> Option<u64> {
    let max = number_in(&folder.join("memory.max"));
    let high = number_in(&folder.join("memory.high"));
    let limit = max.into_iter().chain(high).min()?;
    let used = number_in(&folder.join("memory.current")).unwrap_or(0);
    let freeable = figure_in(&folder.join("memory.stat"), "inactive_file ");
    Some(limit.saturating_sub(used.saturating_sub(freeable)))
}

fn left_by_group_v1(folder: &Path) -> Option<u64> {
    let limit = number_in(&folder.join("memory.limit_in_bytes"))?;
    let used = number_in(&folder.join("memory.usage_in_bytes")).unwrap_or(0);
    let freeable = figure_in(&folder.join("memory.stat"), "total_inactive_file ");
    Some(limit.saturating_sub(used.saturating_sub(freeable)))
}

/// The figure after `key` in a file of one figure a line; 0 if there is none.
fn figure_in(file: &Path, key: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let figure = text.lines().find_map(|line| line.strip_prefix(key));
    figure
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn figures_of_the_kernel_are_read() {
        let text = "MemTotal:       100 kB\nMemAvailable:   24 kB\n";
        assert_eq!(kib_of(text, "MemAvailable:"), Some(24 << 10));
        assert_eq!(kib_of(text, "MemFree:"), None);
        assert_eq!(kib_of("MemAvailable: many\n", "MemAvailable:"), None);
        assert!(available_bytes() > 0);
        assert!(available_memory().bytes < u64::MAX);
        assert_eq!(available_huge_bytes(PageSize::Transparent), 0);
    }

    #[test]
    fn tightest_group_of_version_2_bounds() {
        let root = tempfile::tempdir().unwrap();
        let slice = root.path().join("system.slice");
        put(
            &slice,
            &[("memory.max", "1000\n"), ("memory.current", "900\n")],
        );
        let service = slice.join("router.service");
        put(
            &service,
            &[
                ("memory.max", "max\n"),
                ("memory.high", "800\n"),
                ("memory.current", "600\n"),
                ("memory.stat", "anon 500\ninactive_file 100\n"),
            ],
        );
        let groups = "0::/system.slice/router.service\n";
        assert_eq!(left_by_groups(root.path(), groups), Some(100));
        fs::write(slice.join("memory.current"), "100\n").unwrap();
        assert_eq!(left_by_groups(root.path(), groups), Some(300));
        fs::write(service.join("memory.high"), "max\n").unwrap();
        assert_eq!(left_by_groups(root.path(), groups), Some(900));
    }

    #[test]
    fn group_of_version_1_bounds_also_where_its_path_is_not_seen() {
        let root = tempfile::tempdir().unwrap();
        put(
            &root.path().join("memory"),
            &[
                ("memory.limit_in_bytes", "1000\n"),
                ("memory.usage_in_bytes", "900\n"),
                ("memory.stat", "total_inactive_file 50\n"),
            ],
        );
        let groups = "5:cpu,cpuacct:/\n4:hugetlb,memory:/docker/ab\n0::/\n";
        assert_eq!(left_by_groups(root.path(), groups), Some(150));
        let outside = "0::/../other\n4:memory:/../x\n";
        assert_eq!(left_by_groups(root.path(), outside), Some(150));
        assert_eq!(left_by_groups(root.path(), "no groups"), None);
        assert_eq!(left_by_groups(root.path(), "5:cpu:/\n"), None);
    }
}
