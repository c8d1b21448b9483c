"""A GPU that prepares a share of each batch: arguments, errors, failures and what is reported.

The driver is a library for tests, which executes one kernel, with which a GPU is tried. The kernels
that prepare pictures do nothing, so the tests compare bits where the GPU fails or gets nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest

import meetpoint
from meetpoint import transforms as T
from test_gpu import libraries, run

__all__ = ["libraries"]

# Of baseline JPEGs.
JPEGS = str(Path(__file__).parents[2] / "datasets" / "tests" / "golden" / "version-3")
SQUARES = {"FAKE_CUDA_SQUARES": "1"}
RECIPE = [T.CenterCrop(16)]


def loader_of(dataset: str, **arguments: Any) -> meetpoint.Loader[Any]:
    arguments = {"recipe": RECIPE, "batch_size": 8, "workers": 1, **arguments}
    return meetpoint.Loader(dataset, **{"gpu_decode": "cuda:0", **arguments})


def run_here(
    libraries: Path, dataset: str, body: str, variables: Dict[str, str] = {}
) -> None:
    start = "from test_gpu_decode import loader_of, RECIPE\nimport warnings\n"
    lines = "\n".join(line[8:] for line in body.splitlines())
    run(libraries, dataset, start + lines, {**SQUARES, **variables})


@pytest.mark.parametrize("device", ["cuda:x", "tpu", "", "cuda:-1", "cpu", 3, "cuda:0:1"])
def test_a_text_that_names_no_gpu_is_refused(dataset: str, device: Any) -> None:
    with pytest.raises(ValueError, match="gpu_decode is .*cuda:INDEX") as raised:
        loader_of(dataset, gpu_decode=device)
    assert isinstance(raised.value, meetpoint.SettingError)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), 10**400, "half", True, "0.5", [1]])
def test_a_share_that_is_no_part_of_a_batch_is_refused(dataset: str, share: Any) -> None:
    with pytest.raises(ValueError, match="gpu_share is .*a number from 0 to 1") as raised:
        loader_of(dataset, gpu_share=share)
    assert isinstance(raised.value, meetpoint.SettingError)


def test_a_share_without_a_gpu_is_refused(dataset: str) -> None:
    for decode, off in ((None, "gpu_decode is not"), (False, "gpu_decode is False")):
        for share in (0.5, "auto"):
            with pytest.raises(meetpoint.SettingError, match=f"gpu_share is set, but {off}") as raised:
                loader_of(dataset, gpu_decode=decode, gpu_share=share)
            assert raised.value.remedy is not None and "leave gpu_share out" in raised.value.remedy
        memory = f"gpu_memory is set, but device_out is not, and {off}"
        with pytest.raises(meetpoint.SettingError, match=memory):
            loader_of(dataset, gpu_decode=decode, gpu_memory="1GiB")
        loader_of(dataset, gpu_decode=decode).close()


def test_the_first_wrong_argument_is_named_first(dataset: str) -> None:
    with pytest.raises(meetpoint.SettingError, match="gpu_decode is 'tpu'"):
        loader_of(dataset, gpu_decode="tpu", gpu_share=7, gpu_memory="1KiB")
    with pytest.raises(meetpoint.SettingError, match="gpu_share is 7"):
        loader_of(dataset, gpu_share=7, gpu_memory="1KiB")
    with pytest.raises(meetpoint.SettingError, match="gpu_memory is '1KiB'"):
        loader_of(dataset, gpu_memory="1KiB")


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a driver")
def test_a_machine_without_a_driver_is_an_error_with_a_remedy(dataset: str) -> None:
    with pytest.raises(meetpoint.GpuError, match="cuda:0 cannot be used: no NVIDIA driver") as it:
        loader_of(dataset)
    assert it.value.cause == "gpu_no_driver"
    assert it.value.remedy is not None and "install NVIDIA's driver" in it.value.remedy


def test_a_device_of_torch_names_a_gpu(dataset: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(meetpoint.GpuError, match="gpu_decode: cuda:300 cannot be used"):
        loader_of(dataset, gpu_decode=torch.device("cuda", 300))
    with pytest.raises(meetpoint.SettingError, match="gpu_decode is 'cpu'"):
        loader_of(dataset, gpu_decode=torch.device("cpu"))


def test_a_gpu_that_computes_wrong_results_is_refused(libraries: Path, dataset: str) -> None:
    run_here(
        libraries,
        dataset,
        """
        with pytest.raises(meetpoint.GpuError, match="gives wrong results") as it:
            loader_of(dataset)
        assert it.value.remedy
        """,
        {"FAKE_CUDA_SQUARES": "0"},
    )


def test_a_missing_gpu_and_a_missing_compiler_are_errors(libraries: Path, dataset: str) -> None:
    run_here(
        libraries,
        dataset,
        """
        with pytest.raises(meetpoint.GpuError, match="no GPU with the index 3"):
            loader_of(dataset, gpu_decode="cuda:3")
        """,
    )
    run_here(
        libraries,
        dataset,
        """
        with pytest.raises(meetpoint.GpuError, match="libnvrtc"):
            loader_of(dataset)
        """,
        {"MEETPOINT_NVRTC": "/nowhere/libnvrtc.so.12"},
    )


def test_a_share_of_nothing_leaves_everything_to_the_cpu(libraries: Path, dataset: str) -> None:
    run_here(
        libraries,
        dataset,
        """
        host = meetpoint.Loader(dataset, recipe=RECIPE, batch_size=8)
        gpu = loader_of(dataset, gpu_share=0)
        for (wanted, _), (found, _) in zip(list(host), list(gpu)):
            assert numpy.array_equal(found, wanted)
        used = gpu.report()["epochs"][0]["gpu"]
        assert (used["share"], used["prepared"], used["threads"]) == (0.0, 0, 1), used
        assert used["beyond_share"] == gpu.samples
        typed = gpu.explain().gpu
        assert typed.beyond_share == gpu.samples and typed.failure is None
        assert typed.not_taken_because == {} and typed.unused_because is None
        assert host.report()["epochs"][0]["gpu"] is None and host.explain().gpu is None
        """,
    )


LOST = {
    "46": "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "214": "CUDA_ERROR_ECC_UNCORRECTABLE",
    "700": "CUDA_ERROR_ILLEGAL_ADDRESS",
    "719": "CUDA_ERROR_LAUNCH_FAILED",
}
# The first launch tries the GPU.
FAULTS = [
    *(({"FAKE_CUDA_FAIL_LAUNCH": "2", "FAKE_CUDA_FAIL_CODE": it}, LOST[it]) for it in LOST),
    ({"FAKE_CUDA_HANG_LAUNCH": "2"}, "has not finished its work after"),
]


@pytest.mark.parametrize(("variables", "said"), FAULTS)
def test_a_gpu_that_is_lost_or_hangs_is_one_warning_and_changes_no_bit(
    libraries: Path, variables: Dict[str, str], said: str
) -> None:
    cause = "gpu_hung" if "FAKE_CUDA_HANG_LAUNCH" in variables else "gpu_failed"
    run_here(
        libraries,
        JPEGS,
        f"""
        host = meetpoint.Loader(dataset, recipe=RECIPE, batch_size=2)
        gpu = loader_of(dataset, gpu_share=0.5, batch_size=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                for (wanted, _), (found, _) in zip(list(host), list(gpu)):
                    assert numpy.array_equal(found, wanted)
        (warned,) = [it for it in caught if it.category is meetpoint.GpuWarning]
        assert "the CPU prepares its share" in str(warned.message)
        assert warned.filename == "<string>"
        first, second = gpu.report()["epochs"]
        (event,) = [it for it in first["events"] if it["kind"] == "gpu_failed"]
        assert {said!r} in event["message"], event
        assert not [it for it in second["events"] if it["kind"] == "gpu_failed"]
        assert (second["gpu"]["prepared"], second["gpu"]["threads_failed"]) == (0, 1)
        assert gpu.explain().gpu.failure.cause == {cause!r}
        gpu.close()
        """,
        variables,
    )


def test_a_forked_child_gets_an_error_that_says_so(libraries: Path, dataset: str) -> None:
    run_here(
        libraries,
        dataset,
        """
        with loader_of(dataset, gpu_share=0) as loader:
            child = os.fork()
            if child == 0:
                said = []
                try:
                    loader_of(dataset)
                except meetpoint.GpuError as error:
                    said.append((error.cause, "spawn" in error.remedy))
                try:
                    next(iter(loader))
                except meetpoint.ForkError as error:
                    said.append("spawn" in error.remedy)
                os._exit(0 if said == [("gpu_forked", True), True] else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert len(list(loader)) == len(loader)
        """,
    )
    # The parent has used CUDA without this package.
    run_here(
        libraries,
        dataset,
        """
        with pytest.raises(meetpoint.GpuError, match="forked") as it:
            loader_of(dataset)
        assert it.value.cause == "gpu_forked"
        """,
        {"FAKE_CUDA_NO_INIT": "3"},
    )


def test_a_recipe_that_no_gpu_prepares_says_why(libraries: Path, dataset: str) -> None:
    run_here(
        libraries,
        dataset,
        """
        gpu = loader_of(dataset, cache="32MiB")
        (notice,) = gpu.report()["notices"]
        assert notice["kind"] == "not_decoded_on_gpu" and notice["reason"] == {"reason": "cached"}
        list(gpu)
        used = gpu.explain().gpu
        assert used.unused_because == {"reason": "cached"} and used.prepared == 0
        assert any("was not used" in it for it in gpu.explain().sentences)
        """,
    )


def test_kernels_are_loaded_once_for_both_uses_of_a_gpu(libraries: Path, dataset: str) -> None:
    run_here(
        libraries,
        dataset,
        """
        decoding = loader_of(dataset, gpu_share=0)
        modules = ask("fake_modules")
        both = loader_of(dataset, gpu_share=0, output="dlpack", device_out="cuda:0",
                         recipe=[T.CenterCrop(16), T.ToDtype("float32", scale=True)])
        list(both)
        assert ask("fake_modules") == modules > 1
        """,
    )


def test_energy_and_utilisation_of_a_board_are_measured_and_explained(
    libraries: Path, dataset: str
) -> None:
    run_here(
        libraries,
        dataset,
        """
        with loader_of(dataset, gpu_share=0) as loader:
            list(loader)
            assert loader.explain().gpu_meters == []
            with loader.energy() as energy:
                list(loader)
            (board,) = [it for it in energy.components if it.name == "nvml:0"]
            assert board.joules >= 1 and board.utilisation == 0.25 and board.adds_up
            assert "busy for 25 % of the time" in str(energy)
            assert all(it.utilisation is None for it in energy.components if it is not board)
            explained = loader.explain()
            (meter,) = explained.gpu_meters
            assert (meter["board"], meter["samples"]) == ("Fake Board", loader.samples)
            assert (meter["joules"], meter["utilisation"]) == (board.joules, 0.25)
            assert meter["joules_per_sample"] == board.joules / loader.samples
            assert any("Fake Board" in it and "25 %" in it for it in explained.sentences)
        """,
    )
