"""Processes: imports, the command, signals, forks, and that nothing remains."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Iterator, Set

import pytest
from conftest import COUNT, children, is_running, wait_until_gone

import meetpoint
from meetpoint import transforms as T

RECIPE = T.Compose([T.CenterCrop(8)])
DEVICE = meetpoint.Emulated(allow_shared=True)
# A limit that no test reaches.
LIMIT = 120


@pytest.fixture
def runtime_folder() -> Iterator[Path]:
    """Where a process puts its sockets; short, since names of sockets are."""
    with tempfile.TemporaryDirectory(prefix="mp", dir="/tmp") as folder:
        yield Path(folder)


def python(code: str, *arguments: str, folder: Path) -> "subprocess.Popen[str]":
    """Another Python process, which prints its results line by line."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
    )


def shared_memory() -> Set[str]:
    """Named shared memory of ours. Other processes of the machine may have some as well."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("meetpoint")}


@pytest.fixture
def shared_before() -> Set[str]:
    """Named shared memory that was there before the test."""
    return shared_memory()


MAKE = """
import sys, os, meetpoint
from meetpoint import transforms as T
def make(strategy="device-only", **more):
    device = meetpoint.Emulated(allow_shared=True, faults=more.pop("faults", ()))
    return meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8)]), batch_size=2,
                            strategy=strategy, device=device, **more)
"""


WRITE = (
    MAKE
    + """
import numpy
how = sys.argv[2]
def array_of(images):
    return images if how == "numpy" else getattr(numpy, how)(images)
with make(output="numpy" if how == "numpy" else "dlpack", shuffle=False) as loader:
    for epoch in range(2):
        seen = []
        for images, labels in loader:
            array = array_of(images)
            before = array.copy()
            array -= 7
            assert array.flags.writeable and (array + 7 == before).all()
            array[...] = 0
            seen.append(int(before.sum(dtype=numpy.int64)))
        print(sorted(seen), flush=True)
    epochs = loader.report()["epochs"]
    print([epoch["schedule"]["device_batches"] for epoch in epochs], flush=True)
"""
)


@pytest.mark.parametrize("how", ["numpy", "asarray", "from_dlpack"])
def test_batches_of_a_device_are_written_to_in_place(
    dataset: str, runtime_folder: Path, how: str
) -> None:
    process = python(WRITE, dataset, how, folder=runtime_folder)
    output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    first, second, device_batches = output.splitlines()
    assert first == second and json.loads(device_batches) == [COUNT // 2] * 2


def test_importing_needs_no_other_package() -> None:
    code = "import sys, meetpoint; print(sorted({name.split('.')[0] for name in sys.modules}))"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for name in ("numpy", "torch", "jax", "PIL", "pyarrow"):
        assert f"'{name}'" not in output


def test_an_output_is_imported_before_the_first_step_begins(dataset: str) -> None:
    code = """
import sys, meetpoint
loader = meetpoint.Loader(sys.argv[1], recipe=[meetpoint.transforms.CenterCrop(8)])
assert "numpy" not in sys.modules
batches = iter(loader)
assert "numpy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, dataset], check=True, timeout=LIMIT)


def test_the_command_is_the_program(dataset: str) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "meetpoint", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)

    assert meetpoint.__version__ in run("--version").stdout
    inspected = run("inspect", dataset, "--json")
    assert json.loads(inspected.stdout)["samples"] == COUNT
    assert run("inspect", dataset, "--frobnicate").returncode == 2
    assert run("inspect", "/nowhere").returncode == 1


def test_a_job_of_the_command_starts_its_device(dataset: str, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        f'dataset = "{dataset}"\nbatch_size = 4\nstrategy = "device-only"\n'
        '[device]\nkind = "emulated"\nallow_shared = true\n'
        '[[recipe.operation]]\nname = "decode"\n[[recipe.operation]]\nname = "center_crop"\n'
        "size = 8\n"
    )
    command = [sys.executable, "-m", "meetpoint", "run", str(job), "--json"]
    command += ["--report", str(tmp_path / "report")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["runs"][0]["totals"]["device_batches"] == 17


def test_ctrl_c_ends_a_command_as_it_ends_the_native_program(dataset: str, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        f'dataset = "{dataset}"\nbatch_size = 4\nepochs = 1000000\nstrategy = "device-only"\n'
        '[device]\nkind = "emulated"\nallow_shared = true\n'
        '[[recipe.operation]]\nname = "decode"\n[[recipe.operation]]\nname = "center_crop"\n'
        "size = 8\n"
    )
    # In the background of a shell, SIGINT is ignored unless a handler is set.
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from meetpoint.__main__ import main
main()
"""
    with python(code, "run", str(job), folder=tmp_path) as process:
        # The command handles signals before it starts the device.
        while not children(process.pid):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1, errors
    assert errors.splitlines()[-1] == "interrupted" and "Traceback" not in errors


def test_ctrl_c_ends_a_wait_and_leaves_nothing(
    dataset: str, runtime_folder: Path, shared_before: Set[str]
) -> None:
    # In the background of a shell, SIGINT is ignored unless a handler is set. NumPy is imported
    # beforehand, since it turns an interrupt during its import into an ImportError.
    code = MAKE + """
import signal, numpy
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = make(faults=("stall@1",), stall_timeout=600.0)
try:
    print(*loader.device_processes)
    next(iter(loader))
except KeyboardInterrupt:
    print("interrupted")
"""
    with python(code, dataset, folder=runtime_folder) as process:
        assert process.stdout
        device = int(process.stdout.readline())
        assert is_running(device)
        os.kill(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT)
    assert output.strip() == "interrupted", errors
    assert process.returncode == 0
    wait_until_gone(device)
    assert list(runtime_folder.iterdir()) == [] and shared_memory() <= shared_before


@pytest.mark.parametrize("end", ["", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_nothing_is_left_however_a_process_ends(
    dataset: str, end: str, runtime_folder: Path, shared_before: Set[str]
) -> None:
    code = MAKE + f"""
loader = make("wrr")
batches = iter(loader)
next(batches)
print(*loader.device_processes)
{end}
"""
    with python(code, dataset, folder=runtime_folder) as process:
        output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == {"": 0, "os._exit(3)": 3}.get(end, -9), errors
    wait_until_gone(int(output))
    assert list(runtime_folder.iterdir()) == [] and shared_memory() <= shared_before


def test_a_device_that_dies_is_one_warning(dataset: str) -> None:
    before = children(os.getpid())
    with meetpoint.Loader(
        dataset, recipe=RECIPE, batch_size=2, strategy="device-only", device=DEVICE, workers=1
    ) as loader:
        batches = iter(loader)
        samples = len(next(batches)[1])
        (device,) = loader.device_processes
        os.kill(device, signal.SIGKILL)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            samples += sum(len(labels) for _, labels in batches)
        assert samples == COUNT
        # The next epoch starts another, which joins it or a later one.
        events = []
        while "device_reopened" not in [event["kind"] for event in events]:
            assert sum(len(labels) for _, labels in loader) == COUNT
            events = [event for epoch in loader.report()["epochs"] for event in epoch["events"]]
    assert all(event["message"] for event in events), events
    warned = [it for it in caught if issubclass(it.category, meetpoint.DeviceWarning)]
    assert len(warned) <= 1
    for process in children(os.getpid()) - before:
        wait_until_gone(process)


def test_a_stalled_device_that_dies_is_warned_of_once(dataset: str) -> None:
    device = meetpoint.Emulated(allow_shared=True, faults=("die@3",))
    with meetpoint.Loader(
        dataset, recipe=RECIPE, batch_size=2, strategy="device-only", device=device, workers=1
    ) as loader:
        with pytest.warns(meetpoint.DeviceWarning, match="was lost") as caught:
            assert sum(len(labels) for _, labels in loader) == COUNT
    assert len([it for it in caught if it.category is meetpoint.DeviceWarning]) == 1


def test_a_forked_child_gets_an_error_not_the_parent(dataset: str, runtime_folder: Path) -> None:
    code = MAKE + """
loader = make("wrr", output="numpy")
batches = iter(loader)
first, _ = next(batches)
child = os.fork()
if child == 0:
    said = []
    for use in (lambda: next(batches), lambda: iter(loader)):
        try:
            use()
        except meetpoint.ForkError as error:
            said.append(isinstance(error, RuntimeError) and "spawn" in str(error))
    first.sum()
    loader.close()
    del batches, first, loader
    os._exit(0 if said == [True, True] else 1)
print(os.waitpid(child, 0)[1], 1 + sum(1 for _ in batches))
"""
    with python(code, dataset, folder=runtime_folder) as process:
        output, errors = process.communicate(timeout=LIMIT)
    assert output.split() == ["0", "33"], errors


def count_in_child(loader: meetpoint.Loader, answer: Any) -> None:
    """The function of a spawned child."""
    with loader:
        answer.put(sum(len(labels) for _, labels in loader))


def test_a_spawned_child_works(dataset: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    with meetpoint.Loader(dataset, recipe=RECIPE, batch_size=5) as loader:
        answer = spawn.Queue()
        child = spawn.Process(target=count_in_child, args=(loader, answer))
        child.start()
        assert answer.get(timeout=LIMIT) == COUNT
        child.join()
    assert child.exitcode == 0
