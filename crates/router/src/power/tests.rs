//! Back-ends on folders that look like sysfs of servers: an Intel Xeon with `intel_pstate`
//! in passive mode, an AMD EPYC with `acpi-cpufreq`, and what goes wrong with them.

use std::fs;
use std::path::{Path, PathBuf};

use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::tap::FrequencyLever;

use super::cpufreq::Cpufreq;
use super::cpuidle::Cpuidle;
use super::levers::{Cores, Levers, Missing};
use super::rapl::Rapl;
use super::sysfs::Folder;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().expect("a folder"));
        for (file, text) in files {
            tree.write(file, text);
        }
        tree
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, format!("{text}\n")).expect("a file");
    }

    fn read(&self, file: &str) -> String {
        let text = fs::read_to_string(self.0.path().join(file)).expect("a file");
        text.trim().to_owned()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn kept(&self) -> PathBuf {
        self.path().join("run/cpufreq")
    }

    fn levers(&self, kind: GovernorKind, cpus: Vec<Option<u32>>) -> (Levers, Missing) {
        let cores = Cores {
            of_workers: cpus,
            of_receivers: Vec::new(),
            usable: vec![0, 1],
        };
        Levers::take(&self.sys(), &self.kept(), kind, cores)
    }

    fn sys(&self) -> Folder {
        Folder::new(self.path())
    }
}

/// A policy for each of so many cores.
fn xeon(n_cores: u32) -> Tree {
    let tree = Tree::new(&[
        ("devices/system/cpu/cpuidle/current_governor", "menu"),
        (
            "devices/system/cpu/cpuidle/available_governors",
            "ladder menu teo",
        ),
        ("devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
        ("devices/system/cpu/cpu0/cpuidle/state1/name", "C1E"),
        ("devices/system/cpu/cpu0/cpuidle/state2/name", "C6"),
        ("class/powercap/intel-rapl:0/name", "package-0"),
        ("class/powercap/intel-rapl:0/energy_uj", "999000"),
        ("class/powercap/intel-rapl:0/max_energy_range_uj", "1000000"),
        ("class/powercap/intel-rapl:0:0/name", "dram"),
        ("class/powercap/intel-rapl:0:0/energy_uj", "5"),
    ]);
    for core in 0..n_cores {
        let of_core = |file| format!("devices/system/cpu/cpufreq/policy{core}/{file}");
        tree.write(&of_core("affected_cpus"), &core.to_string());
        tree.write(&of_core("cpuinfo_min_freq"), "800000");
        tree.write(&of_core("cpuinfo_max_freq"), "3600000");
        tree.write(&of_core("scaling_max_freq"), "3000000");
        tree.write(&of_core("scaling_driver"), "intel_cpufreq");
        tree.write(&of_core("scaling_governor"), "schedutil");
    }
    tree
}

const EPYC: [(&str, &str); 7] = [
    ("devices/system/cpu/cpufreq/policy0/affected_cpus", "0 1"),
    (
        "devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq",
        "1500000",
    ),
    (
        "devices/system/cpu/cpufreq/policy0/scaling_max_freq",
        "2500000",
    ),
    (
        "devices/system/cpu/cpufreq/policy0/scaling_driver",
        "acpi-cpufreq",
    ),
    (
        "devices/system/cpu/cpufreq/policy0/scaling_governor",
        "userspace",
    ),
    (
        "devices/system/cpu/cpufreq/policy0/scaling_setspeed",
        "1500000",
    ),
    (
        "devices/system/cpu/cpufreq/policy0/scaling_available_frequencies",
        "2500000 2200000 1500000",
    ),
];

const MAX_OF_0: &str = "devices/system/cpu/cpufreq/policy0/scaling_max_freq";
const MAX_OF_1: &str = "devices/system/cpu/cpufreq/policy1/scaling_max_freq";
const SPEED: &str = "devices/system/cpu/cpufreq/policy0/scaling_setspeed";

#[test]
fn frequencies_are_capped_by_core_and_set_back_at_the_end() {
    let tree = xeon(2);
    let mut cpufreq = Cpufreq::open(&tree.sys(), &tree.kept(), &[0, 1]).expect("two policies");
    assert!(cpufreq.describe().contains("intel_cpufreq"));
    assert!(cpufreq.is_per_cpu(&[Some(0), Some(1)]) && !cpufreq.is_per_cpu(&[None, None]));
    cpufreq.claim().expect("files that can be written");
    cpufreq
        .set(&[(Some(0), 4), (Some(1), 1)])
        .expect("files that can be written");
    // Shares of what the operator allows, not of what the processor can.
    assert_eq!(
        (tree.read(MAX_OF_0), tree.read(MAX_OF_1)),
        ("1500000".into(), "2550000".into())
    );
    assert_eq!(cpufreq.khz(Some(0)), 1_500_000);
    assert!((cpufreq.relative(Some(1)) - 0.85).abs() < 1e-9);
    // Of workers that may run anywhere, the fastest counts everywhere.
    cpufreq.set(&[(None, 3), (None, 2)]).expect("likewise");
    assert_eq!(
        (tree.read(MAX_OF_0), tree.read(MAX_OF_1)),
        ("2250000".into(), "2250000".into())
    );
    drop(cpufreq);
    assert_eq!(
        (tree.read(MAX_OF_0), tree.read(MAX_OF_1)),
        ("3000000".into(), "3000000".into())
    );
}

#[test]
fn with_the_governor_userspace_the_speed_is_one_that_the_processor_has() {
    let tree = Tree::new(&EPYC);
    let mut cpufreq = Cpufreq::open(&tree.sys(), &tree.kept(), &[1]).expect("a policy");
    assert!(!cpufreq.is_per_cpu(&[Some(0), Some(1)]));
    cpufreq.claim().expect("a file that can be written");
    let set: Vec<_> = (0..5)
        .map(|p_state| {
            cpufreq.set(&[(Some(1), p_state)]).expect("likewise");
            tree.read(SPEED)
        })
        .collect();
    assert_eq!(set, ["2500000", "2200000", "2200000", "2200000", "1500000"]);
    drop(cpufreq);
    assert_eq!(tree.read(SPEED), "1500000");
}

#[test]
fn machines_without_levers_say_why() {
    let tree = Tree::new(&[]);
    let why = Cpufreq::open(&tree.sys(), &tree.kept(), &[0]).expect_err("nothing there");
    assert!(why.contains("no cpufreq driver"), "{why}");
    let why = Cpuidle::open(&tree.sys()).expect_err("nothing there");
    assert!(why.contains("no states"), "{why}");
    let why = Rapl::open(&tree.sys()).expect_err("nothing there");
    assert!(why.contains("no intel-rapl zone"), "{why}");
    let tree = xeon(1);
    let why = Cpufreq::open(&tree.sys(), &tree.kept(), &[7]).expect_err("not these cores");
    assert!(why.contains("cores on which the workers run"), "{why}");
    tree.write(
        "devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq",
        "9000000",
    );
    let why = Cpufreq::open(&tree.sys(), &tree.kept(), &[0]).expect_err("nonsense");
    assert!(why.contains("from 9000000 to 3000000"), "{why}");
    tree.write(MAX_OF_0, "fast");
    let why = Cpufreq::open(&tree.sys(), &tree.kept(), &[0]).expect_err("no number");
    assert!(why.contains("\"fast\", not a number"), "{why}");
}

#[test]
fn a_router_that_was_killed_leaves_no_slow_machine_behind() {
    let tree = xeon(1);
    for kind in [GovernorKind::Tap, GovernorKind::None] {
        let (mut levers, _) = tree.levers(GovernorKind::Tap, vec![None]);
        levers.set_frequencies(&[4]).expect("a file");
        let (capped, kept) = (tree.read(MAX_OF_0), tree.read("run/cpufreq"));
        assert_eq!(
            (capped.as_str(), kept.as_str()),
            ("1500000", "0 scaling_max_freq 3000000")
        );
        // Another one leaves it alone.
        let (_, missing) = tree.levers(GovernorKind::Ondemand, vec![None]);
        assert!(
            missing.0[0].contains("another process governs"),
            "{missing:?}"
        );
        assert_eq!(tree.read(MAX_OF_0), "1500000");
        drop(levers);
        assert_eq!(tree.read(MAX_OF_0), "3000000");
        assert!(!tree.kept().exists());
        // As a router leaves it that is killed; lines that none has written change nothing.
        tree.write(MAX_OF_0, &capped);
        tree.write(
            "run/cpufreq",
            &format!("{kept}\n0 ../x 1\n../.. scaling_max_freq 1"),
        );
        let (levers, missing) = tree.levers(kind, vec![None]);
        assert!(missing.0.is_empty(), "{missing:?}");
        assert_eq!(tree.read(MAX_OF_0), "3000000");
        assert_eq!(tree.kept().exists(), kind == GovernorKind::Tap);
        drop(levers);
    }
    // What cannot be kept is not changed.
    fs::remove_dir_all(tree.path().join("run")).expect("an empty folder");
    fs::write(tree.path().join("run"), "").expect("a file in its place");
    let (levers, missing) = tree.levers(GovernorKind::Tap, vec![None]);
    assert_eq!(levers.frequency(), FrequencyLever::None);
    assert!(
        missing.0[0].contains("could not be set back"),
        "{missing:?}"
    );
}

#[test]
fn policies_of_cores_that_are_off_and_threads_that_receive_are_left_alone() {
    let tree = xeon(3);
    fs::remove_file(
        tree.path()
            .join("devices/system/cpu/cpufreq/policy2/affected_cpus"),
    )
    .expect("it is there");
    let cores = Cores {
        of_workers: vec![Some(0)],
        of_receivers: vec![1],
        usable: vec![0, 1, 2],
    };
    let (mut levers, missing) = Levers::take(&tree.sys(), &tree.kept(), GovernorKind::Tap, cores);
    assert!(missing.0.is_empty(), "{missing:?}");
    levers.set_frequencies(&[4]).expect("a file");
    assert_eq!(
        (tree.read(MAX_OF_0), tree.read(MAX_OF_1)),
        ("1500000".into(), "3000000".into())
    );
    drop(levers);
    // With one frequency for both, that of the thread that receives counts.
    tree.write("devices/system/cpu/cpufreq/policy0/affected_cpus", "0 1");
    let cores = Cores {
        of_workers: vec![Some(0)],
        of_receivers: vec![1],
        usable: vec![0, 1],
    };
    let (mut levers, _) = Levers::take(&tree.sys(), &tree.kept(), GovernorKind::Tap, cores);
    levers.set_frequencies(&[4]).expect("a file");
    assert_eq!(tree.read(MAX_OF_0), "3000000");
}

/// Puts something in the place of a file that takes no writes, not even from root.
fn refuse_writes(tree: &Tree, file: &str) {
    let path = tree.path().join(file);
    fs::remove_file(&path).expect("it is there");
    std::os::unix::fs::symlink("/dev/full", path).expect("a link");
}

#[test]
fn a_cpufreq_that_refuses_or_vanishes_is_reported_once_and_left_alone() {
    let tree = xeon(2);
    let cpus = vec![Some(0), Some(1)];
    let (mut levers, missing) = tree.levers(GovernorKind::Tap, cpus);
    assert!(missing.0.is_empty());
    assert_eq!(levers.frequency(), FrequencyLever::PerWorker);
    levers.set_frequencies(&[4, 4]).expect("both");
    assert!((levers.relative_frequency(1) - 0.5).abs() < 1e-9);
    refuse_writes(&tree, MAX_OF_0);
    let error = levers.set_frequencies(&[0, 3]).expect_err("full");
    assert!(
        error.to_string().contains("policy0/scaling_max_freq"),
        "{error}"
    );
    // The core that can be reached is as it was before the router.
    assert_eq!(tree.read(MAX_OF_1), "3000000");
    assert_eq!(
        (levers.frequency(), levers.khz(1)),
        (FrequencyLever::None, None)
    );
    assert!((levers.relative_frequency(1) - 1.0).abs() < 1e-9);
    let told = levers
        .told()
        .iter()
        .find(|it| it.name == "cpufreq")
        .expect("it is listed");
    assert!(
        !told.is_used && told.detail.starts_with("lost: "),
        "{told:?}"
    );
    levers.set_frequencies(&[1, 1]).expect("nothing is tried");

    let tree = xeon(1);
    let (mut levers, _) = tree.levers(GovernorKind::Ondemand, vec![None]);
    assert_eq!(levers.frequency(), FrequencyLever::PerWorker);
    fs::remove_dir_all(tree.path().join("devices")).expect("it is there");
    levers.set_frequencies(&[1]).expect_err("it is gone");

    let tree = xeon(1);
    refuse_writes(&tree, "devices/system/cpu/cpuidle/current_governor");
    let (_, missing) = tree.levers(GovernorKind::None, vec![None]);
    assert!(
        missing.0.is_empty(),
        "nothing is written, so nothing is missed"
    );
}

#[test]
fn governors_without_levers_say_what_they_miss() {
    let tree = Tree::new(&[]);
    let n_missing = |kind| tree.levers(kind, vec![None]).1.0.len();
    let kinds = [
        (GovernorKind::None, 0),
        (GovernorKind::Tap, 1),
        (GovernorKind::IdleThread, 1),
        (GovernorKind::Ondemand, 1),
        (GovernorKind::Ladder, 2),
        (GovernorKind::GreedyEpi, 2),
    ];
    for (kind, expected) in kinds {
        assert_eq!(n_missing(kind), expected, "{kind:?}");
    }
}

#[test]
fn the_kernels_ladder_is_chosen_where_it_has_one() {
    const CURRENT: &str = "devices/system/cpu/cpuidle/current_governor";
    let tree = xeon(1);
    let (levers, missing) = tree.levers(GovernorKind::Ladder, vec![None]);
    assert!(missing.0.is_empty(), "{missing:?}");
    assert_eq!(tree.read(CURRENT), "ladder");
    drop(levers);
    assert_eq!(tree.read(CURRENT), "menu");
    tree.write("devices/system/cpu/cpuidle/available_governors", "menu teo");
    let mut cpuidle = Cpuidle::open(&tree.sys()).expect("states");
    let why = cpuidle.choose_ladder().expect_err("no such governor");
    assert!(why.contains("it has: menu teo"), "{why}");
    drop(cpuidle);
    assert_eq!(tree.read(CURRENT), "menu");
}

#[test]
fn energy_is_counted_across_the_end_of_the_range_but_never_backwards() {
    const PACKAGE: &str = "class/powercap/intel-rapl:0/energy_uj";
    const DRAM: &str = "class/powercap/intel-rapl:0:0/energy_uj";
    let tree = xeon(1);
    let mut rapl = Rapl::open(&tree.sys()).expect("two counters");
    assert_eq!(rapl.describe(), "package-0, package-0/dram");
    let mut used = |package: &str, dram: &str| {
        tree.write(PACKAGE, package);
        tree.write(DRAM, dram);
        rapl.read();
        let used: Vec<_> = rapl.used_uj().map(|(_, used_uj)| used_uj).collect();
        assert_eq!(
            rapl.all_uj(),
            used[0] + used[1],
            "memory is not in the package"
        );
        (used[0], used[1])
    };
    assert_eq!(used("999500", "7"), (500, 2));
    assert_eq!(
        used("200", "9"),
        (1_200, 4),
        "999,500 to 1,000,000, and 200 more"
    );
    // Without a range, and beyond it, how much was used cannot be known.
    assert_eq!(used("2000000", "1"), (1_200, 4));
    assert_eq!(used("300", "2"), (1_300, 5));
    assert_eq!(used("garbage", "3"), (1_300, 6));
    fs::remove_file(tree.path().join(PACKAGE)).expect("it is there");
    rapl.read();
    assert_eq!(rapl.all_uj(), 1_306);
    // Zones may stand in the folder of their package alone, as on older kernels.
    let tree = Tree::new(&[
        ("class/powercap/intel-rapl:0/name", "package-0"),
        ("class/powercap/intel-rapl:0/energy_uj", "1"),
        ("class/powercap/intel-rapl:0/intel-rapl:0:0/name", "core"),
        ("class/powercap/intel-rapl:0/intel-rapl:0:0/energy_uj", "1"),
    ]);
    let rapl = Rapl::open(&tree.sys()).expect("two counters");
    assert_eq!(rapl.describe(), "package-0, package-0/core");
    fs::remove_file(tree.path().join(PACKAGE)).expect("it is there");
    let why = Rapl::open(&tree.sys()).expect_err("it cannot be read");
    assert!(
        why.contains("cannot read") && why.contains("energy_uj"),
        "{why}"
    );
}
