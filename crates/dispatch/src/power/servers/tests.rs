//! The published servers, and parameters that are refused.

use super::super::model::CONSERVATIVE_THETA;
use super::*;

fn published(name: &str) -> Server {
    Server::published(name).expect(name)
}

#[test]
fn equation_6_8_gives_the_cells_of_the_tables() {
    for name in Server::PUBLISHED {
        let cpu = published(name).cpu;
        for row in &cpu.p_states {
            let watts = cpu.largest_w(row.frequency_hz);
            let message = format!("{name} {}: {watts} {}", row.frequency_hz, row.max_w);
            assert!((watts - row.max_w).abs() <= 0.02, "{message}");
        }
    }
    let mut other = published("9520").cpu;
    other.nu = 4.22;
    assert!((other.largest_w(1.066e9) - 1.0).abs() < 0.02);
}

#[test]
fn the_chassis_of_the_low_energy_server_takes_least() {
    let chassis = Server::PUBLISHED.map(|name| published(name).chassis_w);
    assert_eq!(chassis, [68.43, 34.20, 117.82]);
}

#[test]
fn loads_go_to_few_processors_and_few_cores() {
    let cpu = published("e5620").cpu;
    let at = |load_hz| cpu.place(load_hz, CONSERVATIVE_THETA).expect("a load");
    assert_eq!((at(0.0).n_devices, at(0.0).n_cores), (0, 0));
    // 1.28 GHz of 1.6 GHz are 0.8, which is not under the threshold.
    assert_eq!((at(1.27e9).n_cores, at(1.27e9).p_state), (1, 0));
    assert_eq!((at(1.28e9).n_cores, at(1.28e9).p_state), (1, 1));
    assert_eq!(at(2.4e9 * 0.8).p_state, 6);
    assert_eq!((at(2.4e9).n_cores, at(2.41e9).n_cores), (1, 2));
    let full = at(9.6e9);
    assert_eq!((full.n_devices, full.n_cores), (1, 4));
    let two = at(9.6e9 + 3.0e9);
    assert_eq!((two.n_devices, two.n_cores, two.p_state), (2, 2, 6));
    assert!((two.core_hz - 0.6e9).abs() < 1.0);
    assert_eq!(cpu.place(19.3e9, CONSERVATIVE_THETA), None);
    assert_eq!(cpu.place(-1.0, CONSERVATIVE_THETA), None);
    assert_eq!(cpu.place(f64::NAN, CONSERVATIVE_THETA), None);
}

#[test]
fn power_is_that_of_the_full_cores_and_one_more() {
    let cpu = published("e5620").cpu;
    let at = |load_hz| cpu.power_w(load_hz, CONSERVATIVE_THETA).expect("a load");
    assert_eq!(at(0.0), 0.0);
    assert!((at(0.8e9) - 24.33 * 0.5_f64.powf(0.30)).abs() < 1e-9);
    assert!((at(9.6e9) - 47.04).abs() < 1e-9);
    assert!((at(19.2e9) - 94.08).abs() < 1e-9);
    let two = 47.04 + 29.22 + 5.94 * 0.25_f64.powf(0.84);
    assert!((at(9.6e9 + 3.0e9) - two).abs() < 1e-6);
    let server = published("e3-1220");
    let load = Load {
        cycles_hz: 12.4e9,
        memory_bytes_per_s: 1e9,
        packets_per_s: 1e5,
    };
    let watts = server.power(load, CONSERVATIVE_THETA).expect("it is full");
    assert!((watts.total_w() - (28.21 + 0.61 + 1.26 + 34.20)).abs() < 1e-9);
    let load = Load {
        cycles_hz: 12.5e9,
        ..load
    };
    assert_eq!(server.power(load, CONSERVATIVE_THETA), None);
}

#[test]
fn wrong_parameters_are_refused_with_field_and_remedy() {
    let text = include_str!("e3-1220.toml");
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let error = Server::from_toml(&text.replace(from, to)).expect_err(to);
        error.to_string()
    };
    let error = refused("chassis_w = 34.20", "chassis_w = -1.0");
    assert!(error.contains("chassis_w is -1"), "{error}");
    let error = refused("max_w = 6.69", "max_w = 6.69e9");
    assert!(error.contains("cpu.p_states[1].max_w"), "{error}");
    let error = refused("max_w = 6.69", "max_w = 6.0");
    assert!(
        error.contains("p_states[1].max_w is 6, but must be from 6.25"),
        "{error}"
    );
    // Over the watts of the highest frequency, and over those of the lowest alone.
    for least in ["50.0", "10.41", "6.26", "-0.1", "nan"] {
        let error = refused("active_min_w = 3.63", &format!("active_min_w = {least}"));
        let range = "must be from 0 to 6.25";
        assert!(error.contains("cpu.active_min_w"), "{least}: {error}");
        assert!(error.contains(range), "{least}: {error}");
    }
    let error = refused("sigma = 0.59", "sigma = nan");
    assert!(error.contains("cpu.further_cores[0].sigma"), "{error}");
    let error = refused("frequency_hz = 2.0e9", "frequency_hz = 1.7e9");
    assert!(
        error.contains("ascending") && error.contains("[2]"),
        "{error}"
    );
    let error = refused("frequency_hz = 1.6e9", "frequency_hz = 1.6");
    assert!(error.contains("hertz"), "{error}");
    let error = refused("    { sigma = 0.59, max_w = 5.71 },\n", "");
    assert!(
        error.contains("2 rows") && error.contains("3 for"),
        "{error}"
    );
    let error = refused("nu = 1.89e3\n", "");
    assert!(error.contains("nu"), "{error}");
    let error = Server::published("i7").expect_err("no such server");
    assert!(error.to_string().contains("e3-1220"), "{error}");
}
