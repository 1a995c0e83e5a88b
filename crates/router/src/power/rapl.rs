//! Energy counters of processors (RAPL), by the kernel's powercap.
//!
//! Intel and AMD processors have the same names here. A counter begins again at 0 after
//! `max_energy_range_uj`, within minutes on a large server, so that it is read often enough
//! where watts are wanted: `tachonym power` reads it twice a second apart.

use super::sysfs::Folder;

/// A counter: `package-0`, or a part of it such as `package-0/core`.
#[derive(Debug)]
struct Domain {
    name: String,
    folder: Folder,
    /// Where the counter begins again; `None` if the kernel does not say.
    range_uj: Option<u64>,
    last_uj: u64,
    used_uj: u64,
}

/// All counters.
#[derive(Debug)]
pub(crate) struct Rapl(Vec<Domain>);

impl Rapl {
    /// What the machine has.
    ///
    /// # Errors
    /// Why there is none, in words for an operator.
    pub(crate) fn open(sys: &Folder) -> Result<Self, String> {
        let root = sys.folder("class/powercap");
        let packages = root.numbered("intel-rapl:");
        if packages.is_empty() {
            return Err(format!(
                "{} has no intel-rapl zone: the processor has no energy counters or a \
                 hypervisor hides them",
                root.path().display()
            ));
        }
        let mut domains = Vec::new();
        for (package, folder) in packages {
            let name = folder.text("name").unwrap_or_default();
            // Sub-zones stand beside their package in the class, and in its folder.
            let parts = root.numbered(&format!("intel-rapl:{package}:"));
            let parts = match parts.is_empty() {
                true => folder.numbered(&format!("intel-rapl:{package}:")),
                false => parts,
            };
            domains.push(Domain::open(name.clone(), folder)?);
            for (_, part) in parts {
                let part_name = part.text("name").unwrap_or_default();
                domains.push(Domain::open(format!("{name}/{part_name}"), part)?);
            }
        }
        Ok(Self(domains))
    }

    /// Which counters.
    pub(crate) fn describe(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|it| it.name.as_str()).collect();
        names.join(", ")
    }

    /// Reads all. One that cannot be read stays as it was.
    pub(crate) fn read(&mut self) {
        for domain in &mut self.0 {
            if let Ok(now_uj) = domain.folder.number("energy_uj") {
                domain.advance(now_uj);
            }
        }
    }

    /// Energy used since the start in µJ, by counter.
    pub(crate) fn used_uj(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|it| (it.name.as_str(), it.used_uj))
    }

    /// Energy of all processors and their memory since the start, in µJ. Memory is not in the
    /// package's counter, other parts are.
    pub(crate) fn all_uj(&self) -> u64 {
        // `psys` has the packages in it.
        let is_whole =
            |name: &str| (!name.contains('/') && name != "psys") || name.ends_with("/dram");
        let whole = self.used_uj().filter(|&(name, _)| is_whole(name));
        whole.map(|(_, used_uj)| used_uj).sum()
    }
}

impl Domain {
    fn open(name: String, folder: Folder) -> Result<Self, String> {
        let last_uj = folder.number("energy_uj").map_err(|it| {
            let remedy = match it.kind() {
                std::io::ErrorKind::PermissionDenied => "; only root may read it",
                _ => "",
            };
            format!("{it}{remedy}")
        })?;
        Ok(Self {
            name,
            range_uj: folder.number("max_energy_range_uj").ok(),
            folder,
            last_uj,
            used_uj: 0,
        })
    }

    /// Adds what was used since the last reading: across the end of the range where it goes
    /// back, or nothing if that is unknown. A reading beyond the range is ignored.
    fn advance(&mut self, now_uj: u64) {
        if self.range_uj.is_some_and(|range_uj| now_uj > range_uj) {
            return;
        }
        let last_uj = std::mem::replace(&mut self.last_uj, now_uj);
        let used_uj = match now_uj.checked_sub(last_uj) {
            Some(used_uj) => used_uj,
            None => match self.range_uj {
                Some(range_uj) => range_uj.saturating_sub(last_uj) + now_uj,
                None => 0,
            },
        };
        self.used_uj = self.used_uj.saturating_add(used_uj);
    }
}
