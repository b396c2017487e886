"""Settings come from flags and variables; whatever is wrong is told by name."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from webhook.cli import loading
from webhook.cli.main import app
from webhook.decision.messages import problem_text
from webhook.documents.problem import Problem
from webhook.evaluation.device_settings import DeviceSettings
from webhook.service import settings
from webhook.service.settings import Settings


def read(flags: dict[str, Any] | None = None, **environ: str) -> Settings:
    """Settings without problems."""
    found = Settings.from_sources(flags or {}, environ)
    assert isinstance(found, Settings), found
    return found


def problems(flags: dict[str, Any] | None = None, **environ: str) -> tuple[Problem, ...]:
    """Problems."""
    found = Settings.from_sources(flags or {}, environ)
    assert isinstance(found, tuple)
    return found


def test_defaults_are_those_of_the_documentation() -> None:
    found = read()
    assert (found.listen, found.metrics_listen) == ("0.0.0.0:9443", "0.0.0.0:8080")
    assert (found.keep_alive, found.body_limit) == (120, 7 * 1024 * 1024)
    assert found.rule_combination == "guarded"
    assert "nvidia.com/mig-*" in found.gpu_devices
    assert (found.node_type_label, found.kubernetes_minor) == ("run.ai/type", "1.37")


def test_flags_win_over_variables() -> None:
    assert read(PODGATE_WORKERS="3").workers == 3
    assert read({"workers": 2}, PODGATE_WORKERS="3").workers == 2
    assert read({"workers": None, "policies": []}, PODGATE_WORKERS="3").workers == 3


def test_lists_of_paths_and_of_names_are_split() -> None:
    found = read(
        PODGATE_POLICIES=os.pathsep.join(["/a", "/b"]), PODGATE_GPU_DEVICES="x.com/gpu, y.com/gpu"
    )
    assert found.policies == (Path("/a"), Path("/b"))
    assert found.gpu_devices == ("x.com/gpu", "y.com/gpu")
    assert read({"policies": ["/c"]}, PODGATE_POLICIES="/a").policies == (Path("/c"),)


def test_a_flag_may_have_several_names_separated_by_commas() -> None:
    found = read({"gpu_devices": ["x.com/gpu, y.com/gpu,", "z.com/gpu"]})
    assert found.gpu_devices == ("x.com/gpu", "y.com/gpu", "z.com/gpu")
    assert read({"policies": ["/a,b"]}).policies == (Path("/a,b"),)


def test_settings_about_devices() -> None:
    found = read(
        {"dra_feature_gates": ["MPSSupport=true,TimeSlicingSettings=false"]},
        PODGATE_DRA_DRIVER_VERSION="25.12",
        PODGATE_DRA_CHECKS="warn",
        PODGATE_DRA_UNKNOWN_VERSION="warn",
        PODGATE_DRA_MAX_NODES_PER_DOMAIN="72",
        PODGATE_DRA_CONTROLLERS="system:serviceaccount:nvidia:controller",
        PODGATE_DEVICE_CLASSES="a100.example.com=gpu, slice=mig",
        PODGATE_KUBERNETES_MINOR="1.36",
    )
    assert found.installation_config().devices == DeviceSettings(
        driver_version="25.12",
        gates={"MPSSupport": True, "TimeSlicingSettings": False},
        checks="warn",
        unknown_version="warn",
        most_nodes=72,
        class_types={"a100.example.com": "gpu", "slice": "mig"},
        controllers=("system:serviceaccount:nvidia:controller",),
        kubernetes_minor=36,
    )
    mode = read(PODGATE_DRA_IMEX_MODE="hostManaged").installation_config().devices.imex_mode
    assert mode == "hostManaged"


def test_settings_about_devices_have_the_same_defaults_everywhere() -> None:
    assert read().installation_config().devices == DeviceSettings(kubernetes_minor=37)


@pytest.mark.parametrize(
    ("name", "value", "found", "fix"),
    [
        ("dra_feature_gates", "MPSSuport=true", "MPSSuport", "write MPSSupport, if"),
        ("dra_feature_gates", "x=true", "x, which is not", "write one of TimeSlicingSettings"),
        ("dra_feature_gates", "AllAlpha=true", "AllAlpha", "name each feature gate"),
        ("dra_feature_gates", "MPSSupport", "MPSSupport", "NAME=true or NAME=false"),
        ("dra_feature_gates", "MPSSupport=yes", "MPSSupport=yes", "NAME=true or NAME=false"),
        ("dra_feature_gates", "MPSSupport=true,MPSSupport=false", "two values", "once"),
        ("dra_feature_gates", "DynamicMIG=true,MPSSupport=true", "both on", "not start with both"),
        ("device_classes", "a=tpu", "a=tpu", "where TYPE is one of gpu, mig"),
        ("device_classes", "a=gpu,a=mig", "a with two values", "write it once"),
        ("device_classes", "A=gpu", "A=gpu", "NAME=TYPE"),
        ("dra_driver_version", "0.6", "0.6", "write one of 25.3, 25.8, 25.12, 0.4, 0.5"),
        ("dra_checks", "no", "no", "deny, warn or off"),
        ("dra_imex_mode", "host", "host", "driverManaged or hostManaged"),
        ("dra_max_nodes_per_domain", "0", "0", "from 1 to 10000"),
    ],
)
def test_faults_of_settings_about_devices_have_a_remedy(
    name: str, value: str, found: str, fix: str
) -> None:
    given: Any = [value] if settings.listed_as(name) else value
    for told, shown in (
        (problems({name: given}), "--" + name.replace("_", "-")),
        (problems({}, **{f"PODGATE_{name.upper()}": value}), f"PODGATE_{name.upper()}"),
    ):
        assert [each.path for each in told] == [shown]
        assert found in told[0].found
        assert fix in told[0].fix


def test_gates_that_only_the_manual_excludes_are_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gates = ["MPSSupport=true,NVMLDeviceHealthCheck=true"]
    loading.installation_config(read({"dra_feature_gates": gates}))
    assert "found MPSSupport and NVMLDeviceHealthCheck both on" in capsys.readouterr().err


def test_an_empty_variable_counts_as_not_given() -> None:
    assert read(PODGATE_WORKERS=" ", PODGATE_TLS_CERT="").workers == 0


@pytest.mark.parametrize(
    "name, value",
    [
        ("workers", "many"),
        ("workers", "-1"),
        ("listen", "9443"),
        ("listen", "h:99999"),
        ("metrics_listen", "nowhere"),
        ("keep_alive", "0"),
        ("deadline", "0"),
        ("body_limit", "10"),
        ("rule_combination", "loose"),
        ("log_level", "loud"),
        ("plain_http", "perhaps"),
        ("kubernetes_minor", "36"),
    ],
)
def test_a_bad_value_is_told_once_with_name_what_was_found_and_what_is_wanted(
    name: str, value: str
) -> None:
    for found, shown in (
        (problems({name: value}), "--" + name.replace("_", "-")),
        (problems({}, **{f"PODGATE_{name.upper()}": value}), f"PODGATE_{name.upper()}"),
    ):
        assert [each.path for each in found] == [shown]
        text = problem_text(found[0])
        assert value.removeprefix("h:") in text
        assert "; write " in text
        assert "\n" not in text


def test_all_problems_are_told_at_once() -> None:
    found = problems({"workers": "x", "listen": "y"}, PODGATE_DRAIN="z", PODGATE_POLICY="w")
    assert {each.path for each in found} == {
        "--workers", "--listen", "PODGATE_DRAIN", "PODGATE_POLICY",
    }  # fmt: skip


def test_a_misspelt_name_is_told_with_the_likely_one() -> None:
    assert "PODGATE_POLICIES" in problem_text(problems(PODGATE_POLICYS="/a")[0])
    assert "--workers" in problem_text(problems({"worker": 1})[0])


def test_what_kubernetes_tells_of_services_is_no_setting() -> None:
    read(
        PODGATE_PORT="tcp://10.0.0.1:443",
        PODGATE_PORT_443_TCP="tcp://10.0.0.1:443",
        PODGATE_PORT_443_TCP_ADDR="10.0.0.1",
        PODGATE_SERVICE_HOST="10.0.0.1",
        PODGATE_SERVICE_PORT="443",
        PODGATE_SERVICE_PORT_HTTPS="443",
        PODGATE_METRICS_PORT="tcp://10.0.0.2:8080",
        PODGATE_METRICS_SERVICE_HOST="10.0.0.2",
        OTHER="x",
    )


def test_variables_of_other_commands_and_of_the_tests_may_be_set() -> None:
    read(
        PODGATE_CERTS_DIR="/c",
        PODGATE_CACHE_DIR="/c",
        PODGATE_FUZZ_PAIRS="5",
        PODGATE_UPDATE_GOLDEN="1",
    )
    assert not settings.OTHERS & {settings.variable(name) for name in Settings.model_fields}


def test_no_setting_is_called_as_kubernetes_calls_its_variables() -> None:
    for name in Settings.model_fields:
        assert not settings.SERVICE_LINK.fullmatch(settings.variable(name)), name


def test_every_setting_says_what_to_write() -> None:
    for name, row in Settings.model_fields.items():
        assert row.description, name


def test_serving_needs_a_pair_or_the_word_to_go_without() -> None:
    texts = [problem_text(each) for each in read().unfit_to_serve()]
    assert [text.split(": ")[1] for text in texts] == ["--tls-cert", "--tls-key"]
    assert read({"plain_http": True}).unfit_to_serve() == ()
    assert read({"tls_cert": "/c", "tls_key": "/k"}).unfit_to_serve() == ()
    assert len(read({"plain_http": True, "client_ca": "/c"}).unfit_to_serve()) == 1


@pytest.mark.parametrize(
    "text, expected",
    [("0.0.0.0:9443", ("0.0.0.0", 9443)), ("[::]:9443", ("::", 9443)), ("h:1", ("h", 1))],
)
def test_addresses_have_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert settings.address(text) == expected
    assert read({"listen": text}).listen == text


def controllers_file(folder: Path, *users: str) -> Path:
    """A list of trusted controllers with these users."""
    file = folder / "controllers.yaml"
    listed = [{"users": list(users), "kinds": [{"group": "example.com", "kind": "Thing"}]}]
    file.write_text(json.dumps(listed), "utf-8")
    return file


def test_a_list_of_controllers_with_a_governed_namespace_is_refused_at_start(
    tmp_path: Path,
) -> None:
    """Whoever may make service accounts in a governed namespace would be a controller."""
    for user in ("system:serviceaccount:team:*", "system:serviceaccount:kube-system:*"):
        file = controllers_file(tmp_path, user)
        for command in ("serve", "control"):
            found = CliRunner().invoke(
                app,
                [command, *(["--plain-http"] if command == "serve" else [])],
                env={"PODGATE_TRUSTED_CONTROLLERS": str(file), "PODGATE_EXEMPT": "other"},
            )
            assert found.exit_code == 2, (command, found.output)
            assert str(file) in found.stderr
            assert user.split(":")[2] in found.stderr


def test_an_exempt_namespace_may_be_listed_whole(tmp_path: Path) -> None:
    file = controllers_file(tmp_path, "system:serviceaccount:things:*")
    settings = read({"trusted_controllers": file}, PODGATE_EXEMPT="things,more")
    words = loading.installation_config(settings)
    assert words.controllers.trusts("system:serviceaccount:things:any", ("example.com", "Thing"))
    own = read({"trusted_controllers": file, "own_namespace": "things"})
    assert loading.installation_config(own).controllers.entries
    with pytest.raises(loading.BadInput):
        loading.installation_config(read({"trusted_controllers": file}))
