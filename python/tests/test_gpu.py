"""Batches on a GPU: arguments, errors, streams and memory, with a test library as the driver.

The memory of the driver for tests is that of the host, so that its bytes can be compared; kernels
are not executed.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterator

import numpy
import pytest

import meetpoint
from meetpoint import transforms as T
from meetpoint.collate import List

SOURCES = Path(__file__).parents[2] / "gpu" / "tests" / "fake_cuda"
LIMIT = 120
FLOAT = [T.CenterCrop(16), T.ToDtype("float32", scale=True)]


def loader_of(dataset: str, **arguments: Any) -> meetpoint.Loader[Any]:
    arguments = {"output": "dlpack", "device_out": "cuda:0", **arguments}
    arguments = {"recipe": [T.CenterCrop(16)], "batch_size": 8, "workers": 1, **arguments}
    return meetpoint.Loader(dataset, **arguments)


@pytest.mark.parametrize("device", ["cuda:x", "tpu", "", "cuda:-1", "cpu", 3, "cuda:0:1"])
def test_a_text_that_names_no_gpu_is_refused(dataset: str, device: Any) -> None:
    with pytest.raises(ValueError, match="device_out is .*cuda:INDEX") as raised:
        loader_of(dataset, device_out=device)
    assert isinstance(raised.value, meetpoint.SettingError)


def test_arguments_that_contradict_each_other_are_refused(dataset: str) -> None:
    with pytest.raises(meetpoint.SettingError, match="NumPy's arrays are on the host"):
        loader_of(dataset, output="numpy")
    with pytest.raises(meetpoint.SettingError, match="gpu_prefetch is set, but device_out is not"):
        loader_of(dataset, device_out=None, gpu_prefetch=1)
    with pytest.raises(meetpoint.SettingError, match="gpu_prefetch"):
        loader_of(dataset, gpu_prefetch=-1)
    with pytest.raises(meetpoint.SettingError, match="gpu_memory"):
        loader_of(dataset, gpu_memory="much")
    with pytest.raises(meetpoint.SettingError, match="gpu_pinned_memory is 1048576 bytes") as raised:
        loader_of(dataset, gpu_pinned_memory="1MiB")
    assert raised.value.remedy is not None and "at least 8 MiB" in raised.value.remedy


@pytest.mark.parametrize(
    "name", ["gpu_prefetch", "gpu_memory", "gpu_pinned_memory", "batch_size", "seed", "workers"]
)
def test_numbers_out_of_range_are_refused(dataset: str, name: str) -> None:
    for value in (10**400, -1, float("nan"), float("inf"), True):
        with pytest.raises(meetpoint.SettingError, match=f"{name} is "):
            loader_of(dataset, **{name: value})


def test_bfloat16_without_a_column_of_pictures_is_refused(dataset: str) -> None:
    for columns in (["key"], ["label"], "sample"):
        with pytest.raises(meetpoint.SettingError, match="device_dtype is set") as raised:
            loader_of(dataset, recipe=FLOAT, device_dtype="bfloat16", columns=columns)
        assert raised.value.remedy == "add 'image' to columns, or leave device_dtype out"
    recipe = [T.Views({"a": T.View([T.RandomResizedCrop(16), T.ToTensor()])})]
    with pytest.raises(meetpoint.SettingError, match="the columns label contain no pictures"):
        loader_of(dataset, recipe=recipe, device_dtype="bfloat16", columns=["label"])


def test_a_list_of_tensors_that_cannot_be_indexed_is_refused(dataset: str) -> None:
    for collate in ("list", List(max_size=(64, 64))):
        with pytest.raises(meetpoint.SettingError, match='collate is "list".* device_out') as raised:
            loader_of(dataset, collate=collate)
        assert raised.value.remedy is not None and "set output" in raised.value.remedy
    loader_of(dataset, collate="list", device_out=None).close()


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a driver")
def test_a_machine_without_a_driver_is_an_error_with_a_remedy(dataset: str) -> None:
    with pytest.raises(meetpoint.GpuError, match="cuda:0 cannot be used: no NVIDIA driver") as it:
        loader_of(dataset)
    assert it.value.cause == "gpu_no_driver"
    assert it.value.remedy is not None and "install NVIDIA's driver" in it.value.remedy


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver, the run-time compiler and the management library for tests."""
    folder = tmp_path_factory.mktemp("fake_cuda")
    made = {
        "fake_cuda.c": "libcuda.so.1",
        "fake_nvrtc.c": "libnvrtc.so.12",
        "fake_nvml.c": "libnvidia-ml.so.1",
    }
    for source, library in made.items():
        command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*command, "-o", folder / library, SOURCES / source], check=True)
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


def run(
    libraries: Path, dataset: str, body: str, variables: Dict[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    """Runs a test in a process with the driver for tests."""
    tests = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {tests!r}); from test_gpu import *; dataset = sys.argv[1]"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(libraries),
        "MEETPOINT_NVRTC": str(libraries / "libnvrtc.so.12"),
        "XDG_CACHE_HOME": str(libraries / "cache"),
        **variables,
    }
    command = [sys.executable, "-c", code + "\n" + textwrap.dedent(body), dataset]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def ask(name: str) -> int:
    """Calls a function of the test driver."""
    function = getattr(ctypes.CDLL("libcuda.so.1"), name)
    function.restype = ctypes.c_int64
    return int(function())


def content(tensor: Any) -> numpy.ndarray:
    """The elements of a tensor on the "GPU", whose memory is that of this process."""
    interface = tensor.__cuda_array_interface__
    kind = numpy.dtype(interface["typestr"])
    size = int(numpy.prod(interface["shape"])) * kind.itemsize
    data = ctypes.string_at(interface["data"][0], size)
    return numpy.frombuffer(data, kind).reshape(interface["shape"])


def capsules(tensor: Any, stream: Any) -> Iterator[Any]:
    yield tensor.__dlpack__(stream=stream)


def test_bytes_labels_and_numbers_are_those_of_the_host(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        columns = ["image", "label", "sample", "key"]
        host = meetpoint.Loader(
            dataset, recipe=[T.CenterCrop(16)], batch_size=8, columns=columns, shuffle=True
        )
        gpu = loader_of(dataset, columns=columns, shuffle=True)
        assert gpu.report()["notices"] == []
        for wanted, found in zip(host, gpu):
            assert found["key"] == wanted["key"]
            for name in columns[:3]:
                assert found[name].__dlpack_device__() == (2, 0)
                assert numpy.array_equal(content(found[name]), wanted[name]), name
                assert content(found[name]).dtype == wanted[name].dtype
        assert gpu.state_dict()["recipe"] == host.state_dict()["recipe"]
        """,
    )


def test_bytes_are_copied_and_floats_are_converted_on_the_gpu(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, recipe=FLOAT)
        images = [images for images, _ in gpu]
        assert images[0].shape == [8, 16, 16, 3] and images[0].dtype == "float32"
        # One more when the loader was opened, to try the kernel.
        assert ask("fake_launches") == len(gpu) + 1
        used = gpu.report()["epochs"][0]["delivery"]
        assert (used["device"], used["batches"], used["undivided"]) == ("cuda:0", len(gpu), None)
        pixels = 66 * 16 * 16 * 3
        assert pixels < used["bytes"] < 2 * pixels, used
        # Labels and numbers of samples are not in a slot.
        assert pixels < used["direct_bytes"] < used["bytes"] and used["staged"] is None
        assert used["pinned_bytes"] >= 4 << 20
        assert any("copied to cuda:0" in it for it in gpu.explain().sentences)
        # A state of the host goes on here: it is the same recipe.
        host = meetpoint.Loader(dataset, recipe=FLOAT, batch_size=8)
        gpu.load_state_dict(host.state_dict())
        assert gpu.recipe == host.recipe
        """,
    )


def test_bfloat16_is_converted_on_the_gpu(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, recipe=FLOAT, device_dtype="bfloat16")
        images, _ = next(iter(gpu))
        assert images.dtype == "bfloat16" and images.shape == [8, 16, 16, 3]
        with pytest.raises(AttributeError, match="from_dlpack"):
            images.__cuda_array_interface__
        images.__dlpack__(stream=1)
        with pytest.raises(meetpoint.SettingError, match="the recipe gives uint8"):
            loader_of(dataset, device_dtype="bfloat16")
        with pytest.raises(meetpoint.SettingError, match="device_dtype is 'float64'"):
            loader_of(dataset, recipe=FLOAT, device_dtype="float64")
        """,
    )


def test_samples_are_mixed_on_the_gpu(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        recipe = [*FLOAT, T.MixUp(num_classes=4)]
        host = meetpoint.Loader(dataset, recipe=recipe, batch_size=8)
        gpu = loader_of(dataset, recipe=recipe, device_dtype="bfloat16")
        assert gpu.report()["notices"] == []
        batches = list(gpu)
        for (_, wanted), (images, labels) in zip(host, batches):
            assert images.dtype == "bfloat16" and images.shape == [len(wanted), 16, 16, 3]
            assert labels.dtype == "float32" and labels.shape == list(wanted.shape)
        # The conversion, the mixes of pictures and of labels, and the rounding; and one trial of
        # each of two kernels when the loader was opened.
        assert ask("fake_launches") == 4 * len(gpu) + 2
        used = gpu.report()["epochs"][0]["delivery"]
        assert used["is_mixed"] and used["undivided"] is None
        # Bytes crossed the bus, not elements of float32.
        assert used["bytes"] < 2 * 66 * 16 * 16 * 3, used
        assert gpu.state_dict()["recipe"] == host.state_dict()["recipe"]
        """,
    )


def test_views_and_crops_are_converted_on_the_gpu(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        views = [T.Views({
            "a": T.View([T.RandomResizedCrop(16), T.ToTensor()], count=2),
            "b": T.View([T.RandomResizedCrop(8), T.ToTensor()]),
        })]
        gpu = loader_of(dataset, recipe=views)
        assert gpu.report()["notices"] == []
        batch = next(iter(gpu))
        assert (batch["a"].shape, batch["a"].dtype) == ([8, 2, 3, 16, 16], "float32")
        assert batch["b"].shape == [8, 3, 8, 8]
        crops = loader_of(dataset, recipe=[T.FiveCrop(8), T.ToDtype("float32", scale=True)])
        images, _ = next(iter(crops))
        assert images.shape == [8, 5, 8, 8, 3] and crops.report()["notices"] == []
        """,
    )


def test_a_dataset_of_finished_tensors_is_not_converted_again(
    libraries: Path, dataset: str, tmp_path: Path
) -> None:
    run(
        libraries,
        dataset,
        f"""
        to = {str(tmp_path / "prepared.set")!r}
        meetpoint.prepare(FLOAT, dataset, to, cut="to_dtype")
        host = meetpoint.Loader(to, recipe=FLOAT, batch_size=8)
        gpu = loader_of(to, recipe=FLOAT)
        (notice,) = gpu.report()["notices"]
        assert "contains the results of operations up to the conversion" in notice["message"]
        for (wanted, _), (found, _) in zip(host, gpu):
            assert numpy.array_equal(content(found), wanted)
        # Before the conversion, the GPU executes it.
        meetpoint.prepare(FLOAT, dataset, to + "2", cut="center_crop")
        assert loader_of(to + "2", recipe=FLOAT).report()["notices"] == []
        """,
    )


def test_time_without_work_is_measured_where_the_stream_is_known(
    libraries: Path, dataset: str
) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, recipe=FLOAT)
        for images, _ in gpu:
            images.__dlpack__(stream=77)
        used = gpu.report()["epochs"][0]["delivery"]
        # There was no batch before the first one.
        assert used["gpu_idle_measured"] == len(gpu) - 1, used
        assert used["gpu_idle_ns"] >= 0
        """,
    )


def test_a_recipe_that_needs_finished_tensors_is_prepared_on_the_host(
    libraries: Path, dataset: str
) -> None:
    run(
        libraries,
        dataset,
        """
        recipe = [*FLOAT, T.RandomErasing()]
        host = meetpoint.Loader(dataset, recipe=recipe, batch_size=8)
        gpu = loader_of(dataset, recipe=recipe)
        (notice,) = gpu.report()["notices"]
        assert notice["kind"] == "not_converted_on_gpu"
        assert "`random_erasing`, needs the finished tensor" in notice["message"]
        for (wanted, _), (found, _) in zip(host, gpu):
            assert numpy.array_equal(content(found), wanted)
        assert ask("fake_launches") == 0
        """,
    )


def test_streams_are_ordered_by_the_array_api_standard(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset)
        images, labels = next(iter(gpu))
        stream = ctypes.c_uint64()
        cuda = ctypes.CDLL("libcuda.so.1")
        for given, expected in [(None, 1), (1, 1), (2, 2), (4096, 4096)]:
            before = ask("fake_waits")
            capsule = images.__dlpack__(stream=given, max_version=(1, 0))
            assert ask("fake_waits") == before + 1
            assert ask("fake_last_wait_stream") == expected
            del capsule
        before = ask("fake_waits")
        images.__dlpack__(stream=-1)
        assert ask("fake_waits") == before
        for wrong in (0, -2):
            with pytest.raises(ValueError, match="stream"):
                images.__dlpack__(stream=wrong)
        with pytest.raises(TypeError, match="stream"):
            images.__dlpack__(stream="main")
        with pytest.raises(BufferError):
            images.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError):
            images.__dlpack__(copy=True)
        images.__dlpack__(dl_device=(2, 0))
        assert images.__dlpack_device__() == labels.__dlpack_device__() == (2, 0)
        assert not hasattr(images, "__array_interface__")
        with pytest.raises(TypeError, match="cpu()"):
            numpy.asarray(images)
        assert "cuda:0" in repr(images)
        """,
    )


def test_memory_is_reused_and_bounded(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, recipe=FLOAT, gpu_memory="16MiB", gpu_pinned_memory="33MiB")
        sizes = set()
        for _ in range(4):
            for images, labels in gpu:
                capsule = images.__dlpack__(stream=77)
                del images, labels, capsule
                sizes.add((ask("fake_device_bytes"), ask("fake_pinned_bytes")))
        # The first batches are brought while memory is still allocated.
        assert len(sizes) <= 4 and max(sizes)[0] <= 17 << 20, sizes
        assert ask("fake_last_record_stream") > 0
        # Slots have 2 MiB, of which 1 MiB is left beside what batches are copied through.
        used = gpu.report()["epochs"][-1]["delivery"]
        assert used["direct_bytes"] == 0 and used["pinned_bytes"] <= 8 << 20, used
        assert used["staged"] == {"reason": "limit", "limit_bytes": 1 << 20}, used
        assert "The loader copied batches before the GPU did" in str(gpu.explain()), gpu.explain()
        gpu.close()
        images, labels = None, None
        """,
    )


def test_a_consumer_that_retains_all_batches_gets_an_error(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, gpu_memory="4MiB", gpu_prefetch=0)
        with pytest.raises(meetpoint.BudgetError, match="no GPU memory for a batch.*gpu_memory"):
            held = list(gpu)
        """,
    )


def test_a_gpu_that_fails_is_an_error_that_names_the_batch(libraries: Path, dataset: str) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, recipe=FLOAT)
        seen = 0
        with pytest.raises(meetpoint.GpuError, match="batch . of epoch 0 for cuda:0") as it:
            for _ in gpu:
                seen += 1
        assert it.value.remedy and it.value.cause == "gpu_failed"
        assert seen in (1, 2), seen
        state = gpu.state_dict()
        gpu.close()
        # The batches that were delivered are not delivered again.
        host = meetpoint.Loader(dataset, recipe=FLOAT, batch_size=8)
        host.load_state_dict(state)
        assert len(list(host)) == len(host) - seen
        """,
        {"FAKE_CUDA_FAIL_LAUNCH": "4"},
    )


CONVERTED = """
with pytest.raises(meetpoint.GpuError, match={!r}):
    loader_of(dataset, recipe=FLOAT)
"""


def test_a_missing_gpu_a_missing_compiler_and_an_old_driver_are_errors(libraries: Path, dataset: str) -> None:
    body = """
    with pytest.raises(meetpoint.GpuError, match={!r}):
        loader_of(dataset, device_out={!r})
    """
    run(libraries, dataset, body.format("no GPU with the index 3", "cuda:3"))
    missing = {"MEETPOINT_NVRTC": "/nowhere/libnvrtc.so.12"}
    run(libraries, dataset, CONVERTED.format("libnvrtc"), missing)
    old = {"FAKE_CUDA_VERSION": "11040"}
    run(libraries, dataset, body.format("supports CUDA 11.4", "cuda"), old)


def test_tensors_outlive_the_loader_and_a_forked_child_cannot_use_them(
    libraries: Path, dataset: str
) -> None:
    run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset)
        images, _ = next(iter(gpu))
        wanted = content(images).copy()
        gpu.close()
        del gpu
        assert numpy.array_equal(content(images), wanted)
        child = os.fork()
        if child == 0:
            try:
                images.__dlpack__(stream=1)
            except meetpoint.GpuError as error:
                os._exit(0 if error.cause == "gpu_forked" else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        del images
        """,
    )


def test_measurements_are_plain_data(libraries: Path, dataset: str) -> None:
    ran = run(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, gpu_prefetch=1)
        list(gpu)
        print(json.dumps(gpu.report()["epochs"][0]["delivery"]))
        """,
    )
    used = json.loads(ran.stdout)
    assert used["undivided"] == {"reason": "bytes"}
    assert used["measured"] <= used["batches"] == 9
