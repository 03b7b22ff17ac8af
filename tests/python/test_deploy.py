"""samples/deploy: manifests are valid and ask for no privileges, and their commands run without a cluster."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "samples/deploy"
MANIFESTS = sorted(path.name for path in DEPLOY.glob("*.yaml"))
HEADRACE = [sys.executable, "-m", "headrace"]

LOOP = """
import sys, time
import headrace as hr
assert "_headrace_import_hook" in sys.modules
for step in hr.wrap(range(40), name="train"):
    time.sleep(0.002)
"""

WAITS = """
import time
import headrace as hr

def slow():
    for number in range(40):
        time.sleep(0.004)
        yield number

for step in hr.wrap(slow(), name="train"):
    pass
"""


def pod_of(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs pyyaml: pip install headrace[test]")
    (document,) = yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8"))
    assert {"apiVersion", "kind", "metadata", "spec"} <= set(document)
    spec: dict[str, Any] = document["spec"]
    return spec["template"]["spec"] if document["kind"] == "Job" else spec


def containers_of(name: str) -> dict[str, dict[str, Any]]:
    pod = pod_of(name)
    return {each["name"]: each for each in [*pod.get("initContainers", []), *pod["containers"]]}


class Machine:
    """Runs a container's command in a folder that stands for its volumes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []
        for name in ("opt/headrace", "headrace", "runs"):
            (folder / name).mkdir(parents=True)

    def here(self, text: str) -> str:
        return re.sub(r"(?<![\w/])/(opt/headrace|headrace|runs)\b", rf"{self.folder}/\1", text)

    def start(self, container: dict[str, Any], **more: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", **more}
        for each in container.get("env", []):
            value = each.get("value", "pod-1")
            value = re.sub(r"\$\((\w+)\)", lambda name: environment[name[1]], value)
            environment[each["name"]] = self.here(value)
        command = [self.here(word) for word in container["command"]]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def run(self, container: dict[str, Any], **more: str) -> tuple[int, str, str]:
        process = self.start(container, **more)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def install(self, name: str, *command: str) -> None:
        """A program of the image."""
        words = " ".join(f"'{word}'" for word in command)
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)

    def script(self, text: str) -> None:
        (self.folder / "train.py").write_text(textwrap.dedent(text))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine")
    made.install("headrace", *HEADRACE)
    made.install("python", sys.executable)
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_asks_for_no_privileges(name: str) -> None:
    pod = pod_of(name)
    assert pod["securityContext"]["runAsNonRoot"]
    assert not {"hostPID", "hostNetwork", "hostIPC", "shareProcessNamespace"} & set(pod)
    volumes = {each["name"] for each in pod["volumes"]}
    assert not any("hostPath" in each for each in pod["volumes"])
    for container in containers_of(name).values():
        context = container["securityContext"]
        assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert all(isinstance(word, str) for word in container["command"])


def test_a_pod_is_recorded_by_its_environment(machine: Machine) -> None:
    """The program's interpreter has no package but the standard library's."""
    python = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    probe = [python, "-c", "import headrace"]
    if not Path(python).exists() or not subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no interpreter without Headrace")
    machine.install("python", python)
    package = Path(hr.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    copied = machine.folder / "opt/headrace/headrace"
    shutil.copytree(package, copied, ignore=ignored)
    native = Path(hr._core.__file__)  # of an editable installation, it lies elsewhere
    shutil.copy2(native, copied / native.name)
    containers = containers_of("inject.yaml")
    assert machine.run(containers["headrace"]) == (0, "", "")
    machine.script(LOOP)
    assert machine.run(containers["train"]) == (0, "", "")
    assert hr.Report.load(machine.folder / "runs/train").profile.sink.steps == 40


def test_the_variables_are_those_of_headrace_run() -> None:
    from headrace.run.environment import INJECT, recording_environment

    (given,) = (each["env"] for name, each in containers_of("inject.yaml").items() if name == "train")
    variables = {each["name"]: each["value"] for each in given}
    package = str(Path(hr.__file__).parent.parent)
    expected = recording_environment({"PYTHONPATH": "/headrace"}, "/runs/train")
    assert variables == {name: text.replace(package, "/headrace") for name, text in expected.items()}
    assert INJECT.startswith(package)


def test_sidecars_show_what_is_recorded(
    machine: Machine, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("prometheus_client")
    pytest.importorskip("uvicorn")
    shutil.copy(DEPLOY / "metrics.py", machine.folder / "opt/headrace/metrics.py")
    machine.script("import sys\n" + LOOP + "print('recorded', flush=True)\nsys.stdin.read()\n")
    containers = containers_of("sidecar.yaml")
    # Ports are free ones here.
    metrics, view = containers["metrics"], containers["view"]
    (port,) = (each["containerPort"] for each in metrics["ports"])
    assert metrics["command"][-1] == str(port)
    free = _free_port()
    metrics["command"][-1] = str(free)
    view["command"][view["command"].index("--port") + 1] = "0"

    exporter = machine.start(metrics)  # sidecars begin before the program
    viewer = machine.start(view)
    assert viewer.stdout is not None
    address = viewer.stdout.readline().strip()
    training = machine.start(containers["train"])
    assert training.stdout is not None
    assert training.stdout.readline() == "recorded\n"

    def scraped() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{free}/metrics", timeout=10) as answer:
                return 'headrace_steps_total{loader="train",rank="0"} 40.0' in answer.read().decode()
        except OSError:
            return False

    wait_until(scraped)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address, timeout=10) as answer:
        assert "train" in answer.read().decode()
    training.kill()
    for process in (exporter, viewer):
        process.terminate()
        process.wait(10)  # the first process of a container has to handle the signal itself
    assert exporter.returncode == 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.mark.parametrize(("script", "status"), [(LOOP, 0), (WAITS, 3)])
def test_a_job_fails_if_its_loop_waits(machine: Machine, script: str, status: int) -> None:
    machine.script(script)
    ended, _, err = machine.run(containers_of("job.yaml")["train"])
    assert ended == status, err
    assert (machine.folder / "runs/pod-1/rank0.hrseg").exists()


def test_the_image_runs_as_a_user_and_takes_only_our_wheel() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    (user,) = (rest for word, rest in lines if word == "USER")
    assert int(user) > 0
    copied = [rest.split()[0] for word, rest in lines if word == "COPY"]
    assert all((ROOT / source).exists() for source in copied if not source.startswith("dist/"))
    (steps,) = (rest for word, rest in lines if word == "RUN" and "pip" in rest)
    first, extras, injected, _ = steps.split("&&")
    assert "--no-index" in first
    assert "--no-index" in injected
    assert "--no-deps" in injected
    assert re.search(r'"headrace\[(.*)\]"', extras)
    (command,) = (json.loads(rest) for word, rest in lines if word == "CMD")
    from headrace.show.cli import main

    with main.commands[command[0]].make_context(command[0], command[1:], resilient_parsing=True):
        pass


class TestEnv:
    """``headrace env``"""

    def test_a_shell_takes_it(self, machine: Machine) -> None:
        machine.script(LOOP)
        shell = {"command": ["sh", "-c", 'eval "$(headrace env --out "the run")" && python train.py']}
        assert machine.run(shell) == (0, "", "")
        assert hr.Report.load(machine.folder / "the run").profile.sink.steps == 40

    def test_as_json(self, machine: Machine) -> None:
        status, out, _ = machine.run({"command": ["headrace", "env", "--format", "json"]}, PYTHONPATH="/mine")
        variables = json.loads(out)
        assert status == 0
        assert set(variables) == {"PYTHONPATH", "HEADRACE_RECORD"}
        assert variables["PYTHONPATH"].endswith("headrace/run/inject:/mine")
