//! Governing power in a running router, and what `tachonym power` shows, on a folder that
//! looks like sysfs.

mod bed;

use std::fs;
use std::time::{Duration, Instant};

use bed::{Bed, sysfs, tachonym};
use serde_json::Value;

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);
const SPEED: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq";
const ENERGY: &str = "sys/class/powercap/intel-rapl:0/energy_uj";

fn bed(governor: &str, n_workers: u32) -> Bed {
    Bed::with_workers(&format!("workers.threads = {n_workers}\n"), |folder| {
        sysfs(folder);
        format!(
            "power.governor = \"{governor}\"\npower.sysfs = \"{}\"\n",
            folder.join("sys").display()
        )
    })
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lever<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let levers = shown["governor"]["levers"].as_array().expect("a list");
    levers
        .iter()
        .find(|it| it["name"] == name)
        .expect("it is told")
}

#[test]
fn idle_workers_run_slowly_and_the_frequency_is_set_back_at_the_end() {
    for governor in ["tap", "ondemand", "conservative", "ladder", "idle-thread"] {
        let bed = bed(governor, 1);
        let speed = || fs::read_to_string(bed.path(SPEED)).expect("a file");
        wait_for(governor, || speed() == "1500000");
        let shown = bed.json(&["power", "--seconds", "0.1"]);
        assert_eq!(shown["governor"]["name"], governor);
        assert_eq!(lever(&shown, "cpufreq")["used"], true, "{shown}");
        assert_eq!(shown["governor"]["workers"][0]["khz"], 1_500_000, "{shown}");
        let path = bed.path(SPEED);
        let folder = bed.folder;
        bed.router.stop().expect("it stops");
        assert_eq!(
            fs::read_to_string(path).expect("a file"),
            "3000000",
            "{governor}"
        );
        drop(folder);
    }
}

#[test]
fn without_a_governor_nothing_is_written() {
    let bed = bed("none", 1);
    let shown = bed.json(&["power", "--seconds", "0.1"]);
    assert_eq!(lever(&shown, "cpufreq")["used"], false);
    assert_eq!(shown["governor"]["workers"], Value::Array(Vec::new()));
    fs::remove_file(bed.path(SPEED)).expect("it is there");
    std::thread::sleep(Duration::from_millis(200));
    assert!(!bed.path(SPEED).exists());
}

#[test]
fn watts_are_measured_and_modelled_apart() {
    let bed = bed("none", 1);
    let path = bed.path(ENERGY);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let shown = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Across the end of the counter's range.
            let mut uj: u64 = 8_900_000;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // In one step: a reader never sees half a number.
                fs::write(path.with_extension("new"), uj.to_string()).expect("a file");
                fs::rename(path.with_extension("new"), &path).expect("a file");
                uj = (uj + 100_000) % 9_000_000;
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let shown = bed.json(&["power", "--seconds", "0.5", "--model", "e5620"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        shown
    });
    let watts = shown["measured"][0]["watts"].as_f64().expect("a number");
    assert_eq!(shown["measured"][0]["counter"], "package-0");
    // 0.1 J in each 10 ms or, on a loaded machine, in more.
    assert!(watts > 0.5 && watts < 10.5, "{shown}");
    let modelled = &shown["modelled"];
    assert_eq!(modelled["processor"], "Intel Xeon E5620");
    assert_eq!(modelled["chassis_w"], 68.43);
    let of = |device: &str| modelled[device].as_f64().expect("a number");
    let sum = of("cpu_w") + of("memory_w") + of("nic_w") + of("chassis_w");
    assert!(
        (sum - of("total_w")).abs() < 1e-9 && of("cpu_w") > 0.0,
        "{shown}"
    );
    let blocks = modelled["blocks_w"].as_array().expect("a list").iter();
    let blocks: Vec<_> = blocks.map(|it| it.as_f64().expect("a number")).collect();
    assert_eq!(blocks.len(), 13);
    assert!(
        (blocks.iter().sum::<f64>() - of("cpu_w")).abs() < 1e-9,
        "{shown}"
    );
    let text = bed.text(&["power", "--seconds", "0.1"]);
    for part in [
        "MODELLED",
        "MEASURED",
        "package-0",
        "  B1 ",
        "Intel Xeon E3-1220",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn models_that_are_none_are_refused_with_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model.toml");
    let config = folder.path().join("config.toml");
    let check = |text: &str| {
        fs::write(&config, text).expect("a file");
        let output = tachonym(&["check-config", &config.display().to_string()])
            .output()
            .expect("it runs");
        (
            output.status.success(),
            String::from_utf8(output.stderr).expect("text"),
        )
    };
    let of_model = format!("power.model = \"{}\"\n", model.display());
    let published = include_str!("../../dispatch/src/power/servers/e3-1220.toml");
    let changes: [(&str, &str, &str); 3] = [
        ("chassis_w = 34.20", "chassis_w = -1.0", "chassis_w is -1"),
        (
            "chassis_w = 34.20",
            "chassis_w = 1e9",
            "chassis_w is 1000000000",
        ),
        ("chassis_w = 34.20", "", "missing field `chassis_w`"),
    ];
    for (part, with, expected) in changes {
        assert!(published.contains(part));
        fs::write(&model, published.replace(part, with)).expect("a file");
        let (is_good, errors) = check(&of_model);
        assert!(!is_good && errors.contains(expected), "{with:?}: {errors}");
        assert!(errors.contains("power.model"), "{errors}");
    }
    fs::write(&model, published).expect("a file");
    assert!(check(&of_model).0);
    let (is_good, errors) = check("power.model = \"e3-1230\"\n");
    assert!(
        !is_good && errors.contains("cannot read e3-1230"),
        "{errors}"
    );
}
