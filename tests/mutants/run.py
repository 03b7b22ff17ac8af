"""Ten faults are put into the product, one after the other: does the gate find each of them?

    python tests/mutants/run.py            # `make mutants`: all; exit 1 where one is not found
    python tests/mutants/run.py NUMBER...  # some of them

Needs what `make test` builds. A fault is put into a file of the working tree, what depends on it is built
again, its tests run, and the file is as it was, also after Ctrl-C. Beside each fault stands the part of the
gate that has to find it, so that a round takes minutes.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]


@dataclass(frozen=True)
class Fault:
    """``before`` becomes ``after`` in one place of a file."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]  # Python modules, or names of C++ test programs


FAULTS = (
    Fault(
        "a wait is counted twice",
        "src/metrics/sink_probe.cc",
        "cell_->wait_ns.bump(wait);",
        "cell_->wait_ns.bump(2 * wait);",
        ("metrics_test",),
    ),
    Fault(
        "a queue's capacity is off by one",
        "include/headrace/queues/spsc_queue.h",
        "return number < room;",
        "return number <= room;",
        ("queues_test",),
    ),
    Fault(
        "a batch is swallowed",
        "python/headrace/pipeline/_pipeline.py",
        '_stages.Batch(whole(n, "n"), bool(drop_last)',
        '_stages.Batch(whole(n, "n"), True',
        ("test_pipeline",),
    ),
    Fault(
        "a clock's units",
        "include/headrace/metrics/clock.h",
        "static std::int64_t realtime_ns() noexcept { return read(CLOCK_REALTIME); }",
        "static std::int64_t realtime_ns() noexcept { return read(CLOCK_REALTIME) / 1000; }",
        ("metrics_test",),
    ),
    Fault(
        "a worker's number is another one's",
        "python/headrace/loaders/torch_dataloader/worker.py",
        "self.loader, self.pass_number, worker_id, self.siblings",
        "self.loader, self.pass_number, 0, self.siblings",
        ("torch_loader",),
    ),
    Fault(
        "an exception of a signal's handler is kept back",
        "python/headrace/common/handlers.py",
        "        raise raised\n",
        "        return\n",
        ("test_programs_are_unchanged",),
    ),
    Fault(
        "a wrong sign in the gate",
        "src/analysis/verdict/gate.cc",
        "gate.handoff_share = sink.wait_share - sink.starved_share;",
        "gate.handoff_share = sink.wait_share + sink.starved_share;",
        ("analysis_test", "verdicts_test"),
    ),
    Fault(
        "a cause has another's label",
        "include/headrace/analysis/verdict/diagnosis.h",
        '"no_overlap",    "serial_operator", "too_few_workers"',
        '"serial_operator", "no_overlap",    "too_few_workers"',
        ("verdicts_test",),
    ),
    Fault(
        "a parameter is set in another loader",
        "python/headrace/record/trial.py",
        "if current.changes and same_name(name, current.made_as):",
        "if current.changes and not same_name(name, current.made_as):",
        ("run/test_trials_are_safe", "test_tune"),
    ),
    Fault(
        "a descriptor stays open",
        "python/headrace/common/folder_files.py",
        "    finally:\n        os.close(here)\n",
        "    finally:\n        pass\n",
        ("test_folder_files",),
    ),
)


#: As of each test of ctest, in seconds: a fault that lets a test wait for ever is found.
LONGEST_S = 300


def run(command: list[str], longest_s: int | None = None) -> bool:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=longest_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def passes(fault: Fault) -> bool:
    """Whether the tests of the fault pass."""
    for test in fault.tests:
        if test.endswith("_test"):
            build = ["cmake", "--build", "--preset", "release", "--target", test]
            program = f"build/native/release/tests/{test}"
            if not run(build) or not run([program, "--gtest_fail_fast"], LONGEST_S):
                return False
        else:
            path = ROOT / "tests/python" / test
            if not run([*PYTEST, str(path if path.is_dir() else path.with_suffix(".py"))]):
                return False
    return True


def misplaced() -> list[str]:
    """The faults that do not stand once where they are to be put."""
    texts = {fault: (ROOT / fault.file).read_text(encoding="utf-8") for fault in FAULTS}
    return [
        f"{fault.file}: {fault.before!r}" for fault, text in texts.items() if text.count(fault.before) != 1
    ]


def is_found(fault: Fault) -> bool:
    path = ROOT / fault.file
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(fault.before, fault.after), encoding="utf-8")
    try:
        return not passes(fault)
    finally:
        path.write_text(sound, encoding="utf-8")


def main(numbers: list[int]) -> int:
    if lost := misplaced():
        raise SystemExit("put these faults where they belong now:\n" + "\n".join(lost))
    found = 0
    for number in numbers:
        fault = FAULTS[number - 1]
        caught = is_found(fault)
        found += caught
        print(f"{number:2} {'found' if caught else 'NOT FOUND':<10} {fault.what} ({fault.file})", flush=True)
    print(f"{found} of {len(numbers)} found")
    return 0 if found == len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main([int(number) for number in sys.argv[1:]] or list(range(1, len(FAULTS) + 1))))
