//! Governing power in a running router, and what `tachonym power` shows, on a folder that
//! looks like sysfs.

mod bed;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bed::{Bed, sysfs, tachonym};
use serde_json::Value;
use tachonym_dispatch::power::fit::samples::{Activity, Sample, read_samples, write_samples};
use tachonym_dispatch::power::fit::server::{metered_w, plan};
use tachonym_dispatch::power::servers::Server;

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);
const SPEED: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq";
const ENERGY: &str = "sys/class/powercap/intel-rapl:0/energy_uj";

fn bed(governor: &str, n_workers: u32) -> Bed {
    Bed::with_workers(&format!("workers.threads = {n_workers}\n"), |folder| {
        sysfs(folder);
        format!(
            "power.governor = \"{governor}\"\npower.sysfs = \"{}\"\npower.kept = \"{}\"\n",
            folder.join("sys").display(),
            folder.join("kept").display()
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
    // What somebody else writes stays.
    let path = bed.path(SPEED);
    fs::write(&path, "2999999").expect("a file");
    let folder = bed.folder;
    bed.router.stop().expect("it stops");
    assert_eq!(fs::read_to_string(path).expect("a file"), "2999999");
    drop(folder);
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

/// A meter's record of a published server, without its network card.
fn record() -> String {
    let server = Server::published("e3-1220").expect("it is published");
    let plan = plan(&server.cpu, 10, &[1e9, 5e9], &[]);
    let sample = |activity| Sample {
        line: 0,
        activity,
        watts: metered_w(&server, activity).expect("it is of this server"),
    };
    write_samples(&plan.into_iter().map(sample).collect::<Vec<_>>())
}

#[test]
fn a_meters_record_gives_a_model_that_the_router_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = folder.path().join("samples.csv");
    let samples_path = samples.display().to_string();
    let fit = |record: &str, options: &[&str]| {
        fs::write(&samples, record).expect("a file");
        let arguments = [&["power", "fit", &samples_path], options].concat();
        let output = tachonym(&arguments).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let nic = ["--nic-j-per-packet", "2.3e-7", "--name", "mine"];
    let (is_good, model, fits) = fit(&record(), &nic);
    assert!(is_good, "{fits}");
    assert!(
        fits.contains("core 4 at 3.100 GHz") && fits.contains("R² 1.0000"),
        "{fits}"
    );
    let fitted = Server::from_toml(&model).expect("a model");
    assert_eq!(
        (fitted.name.as_str(), fitted.nic_j_per_packet),
        ("mine", 2.3e-7)
    );
    assert!((fitted.chassis_w - 34.20).abs() < 1e-9);
    let file = folder.path().join("model.toml");
    fs::write(&file, model).expect("a file");
    let config = folder.path().join("config.toml");
    fs::write(&config, format!("power.model = \"{}\"\n", file.display())).expect("a file");
    let check = tachonym(&["check-config", &config.display().to_string()]).output();
    assert!(check.expect("it runs").status.success());

    let (is_good, _, errors) = fit(&record(), &[]);
    assert!(!is_good && errors.contains("device nic"), "{errors}");
    let negative = record().replacen("34.2", "-34.2", 1);
    let (is_good, _, errors) = fit(&negative, &nic);
    assert!(!is_good && errors.contains("watts"), "{errors}");
    let (is_good, json, _) = fit(&record(), &[&nic[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        is_good && json["server"]["name"] == "mine" && json["fits"][0]["r_squared"].is_number()
    );
    let (is_good, _, errors) = fit("device,watts\n", &nic);
    assert!(!is_good && errors.contains("samples.csv"), "{errors}");
}

/// CPU time of a process in seconds, with that of its threads.
fn cpu_s(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|it| it.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// The counter of a machine that takes 10 W idle and 20 W more for each busy core.
#[test]
fn a_load_program_records_what_the_counters_measure() {
    let folder = tempfile::tempdir().expect("a folder");
    sysfs(folder.path());
    for core in 0..128 {
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{core}");
        let file = folder
            .path()
            .join(policy)
            .join("scaling_available_frequencies");
        fs::write(file, "1500000 3000000").expect("a file");
    }
    let energy = folder.path().join(ENERGY);
    let range = energy.with_file_name("max_energy_range_uj");
    fs::write(range, "9000000000").expect("a file");
    let sys = folder.path().join("sys").display().to_string();
    let arguments = [
        "power",
        "measure",
        "--sysfs",
        &sys,
        "--cpus",
        "0",
        "--warm-up",
        "0.1",
    ];
    let arguments = [&arguments[..], &["--seconds", "0.3", "--samples", "1"]].concat();
    let mut command = tachonym(&arguments);
    let child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let pid = child.id();
    let since = Instant::now();
    let writer = std::thread::spawn(move || {
        let new = energy.with_extension("new");
        let is_running = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|it| !it.contains(") Z "))
        };
        while is_running() {
            let joules = 10.0 * since.elapsed().as_secs_f64() + 20.0 * cpu_s(pid);
            let uj = (joules * 1e6) as u64;
            fs::write(&new, uj.to_string()).expect("a file");
            fs::rename(&new, &energy).expect("a file");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    let samples = read_samples(&text).expect("what `fit` reads");
    // Idle, four utilizations at each of two frequencies, memory at two rates.
    assert_eq!(samples.len(), 1 + 4 * 2 + 2, "{text}");
    let frequencies = samples.iter().filter_map(|it| match it.activity {
        Activity::Cpu(cores) => Some(cores.frequency_hz),
        _ => None,
    });
    assert_eq!(
        frequencies.collect::<Vec<_>>(),
        [[1.5e9; 4], [3e9; 4]].concat()
    );
    // Of all steps together, as a loaded machine leaves some of them little time.
    let idle_w = samples[0].watts;
    let busy_w = samples[1..9].iter().map(|it| it.watts).sum::<f64>() / 8.0;
    assert!(idle_w > 1.0 && busy_w > idle_w + 1.0, "{text}");
    let rates = samples.iter().filter_map(|it| match it.activity {
        Activity::Memory { bytes_per_s, .. } => Some(bytes_per_s),
        _ => None,
    });
    assert!(
        rates.clone().count() == 2 && rates.into_iter().all(|it| it > 1e6),
        "{text}"
    );
    let speed = fs::read_to_string(folder.path().join(SPEED)).expect("a file");
    assert_eq!(speed, "3000000", "as it was");

    let empty = tempfile::tempdir().expect("a folder");
    let empty = empty.path().display().to_string();
    let output = tachonym(&["power", "measure", "--sysfs", &empty]).output();
    let errors = String::from_utf8(output.expect("it runs").stderr).expect("text");
    assert!(
        errors.contains("no intel-rapl zone") && errors.contains("power meter"),
        "{errors}"
    );
}
