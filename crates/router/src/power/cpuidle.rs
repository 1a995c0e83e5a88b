//! Sleep of cores, by the kernel's cpuidle.
//!
//! A core on which no thread runs sleeps as deep as the kernel's idle governor lets it; the
//! router only chooses that governor, for `ladder` and `greedy-epi`. Dropped, it sets the idle
//! governor as it was.

use tracing::info;

use super::sysfs::Folder;

const GOVERNOR: &str = "current_governor";

/// The kernel's idle governor, and the states of core 0.
#[derive(Debug)]
pub(crate) struct Cpuidle {
    folder: Folder,
    states: Vec<String>,
    before: Option<String>,
}

impl Cpuidle {
    /// What the kernel has.
    ///
    /// # Errors
    /// Why there is none, in words for an operator.
    pub(crate) fn open(sys: &Folder) -> Result<Self, String> {
        let cpus = sys.folder("devices/system/cpu");
        let of_core = cpus.folder("cpu0/cpuidle");
        let states = of_core.numbered("state");
        let states: Vec<_> = states
            .iter()
            .filter_map(|(_, state)| state.text("name").ok())
            .collect();
        if states.is_empty() {
            return Err(format!(
                "{} has no states: the hypervisor or the kernel decides alone how deep cores \
                 sleep",
                of_core.path().display()
            ));
        }
        Ok(Self {
            folder: cpus.folder("cpuidle"),
            states,
            before: None,
        })
    }

    /// Which states cores have, and who decides between them.
    pub(crate) fn describe(&self) -> String {
        let states = self.states.join(", ");
        let governor = self.folder.text(GOVERNOR);
        let governor = governor.unwrap_or_else(|_| "unknown".to_owned());
        format!("states {states}; the kernel's governor is {governor}")
    }

    /// Has the kernel choose by idle time: its governor `ladder`.
    ///
    /// # Errors
    /// Why it does not, in words for an operator.
    pub(crate) fn choose_ladder(&mut self) -> Result<(), String> {
        let available = self.folder.text("available_governors").unwrap_or_default();
        if !available.split_whitespace().any(|it| it == "ladder") {
            return Err(format!(
                "the kernel has no idle governor ladder (it has: {available}); use a kernel \
                 built with CONFIG_CPU_IDLE_GOV_LADDER"
            ));
        }
        let before = self.folder.text(GOVERNOR);
        let before = before.map_err(|it| format!("cannot read {GOVERNOR}: {it}"))?;
        self.folder.write(GOVERNOR, "ladder").map_err(|it| {
            let path = self.folder.path().join(GOVERNOR);
            format!(
                "cannot write {}: {it}; run the router as root",
                path.display()
            )
        })?;
        info!("the kernel's idle governor is ladder until the router stops (it was {before})");
        self.before = Some(before);
        Ok(())
    }
}

impl Drop for Cpuidle {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = self.folder.write(GOVERNOR, before);
        }
    }
}
