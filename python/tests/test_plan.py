"""Plans, profiles and the cache of prepared samples in Python."""

from pathlib import Path

import numpy as np
import pytest

import meetpoint
from meetpoint import transforms as T

RECIPE = T.Compose([T.Resize((24, 24)), T.RandomHorizontalFlip()])


def batches(loader):
    return [images.copy() for images, _ in loader]


def test_later_epochs_come_from_the_cache_with_the_same_bits(dataset):
    with meetpoint.Loader(dataset, recipe=RECIPE, batch_size=4, shuffle=True) as plain:
        expected = [batches(plain) for _ in range(3)]
    cached = meetpoint.Loader(
        dataset, recipe=RECIPE, batch_size=4, shuffle=True, cache="16MiB", cache_after=2
    )
    with cached as loader:
        for epoch in range(3):
            for one, other in zip(batches(loader), expected[epoch]):
                assert np.array_equal(one, other)
            use = loader.explain().cache
            assert (use["hits"] == 0) == (epoch == 0)
            assert use["bytes"] <= use["budget_bytes"] == 16 << 20
        assert "The cache after operation 2" in str(loader.explain())


def test_an_invalid_cache_is_refused(dataset):
    with pytest.raises(meetpoint.BudgetError, match="cache"):
        meetpoint.Loader(dataset, recipe=RECIPE, cache="900TiB")
    with pytest.raises(meetpoint.SettingError, match="cache"):
        meetpoint.Loader(dataset, recipe=RECIPE, cache="much")


def test_the_memory_of_small_samples_changes_no_batch(dataset):
    with meetpoint.Loader(dataset, recipe=RECIPE, batch_size=4, shuffle=True) as plain:
        expected = [batches(plain) for _ in range(2)]
    for small_samples in (0, "64KiB", 1 << 20):
        with meetpoint.Loader(
            dataset, recipe=RECIPE, batch_size=4, shuffle=True, small_samples=small_samples
        ) as loader:
            for epoch in range(2):
                for one, other in zip(batches(loader), expected[epoch]):
                    assert np.array_equal(one, other)


def test_memory_of_small_samples_that_is_no_size_is_refused(dataset):
    for wrong in ("much", -1, 1.5):
        with pytest.raises(meetpoint.SettingError, match="small_samples"):
            meetpoint.Loader(dataset, recipe=RECIPE, small_samples=wrong)


def test_a_plan_is_made_and_applied_and_refused_for_another_recipe(dataset, tmp_path):
    profiled = meetpoint.profile(
        RECIPE, dataset, samples=4, runs=2, csv=tmp_path / "results.csv", codecs=["none"]
    )
    assert profiled.best in profiled.results
    file = tmp_path / "plan.toml"
    plan = meetpoint.plan(
        RECIPE, dataset, file, profile=tmp_path / "results.csv", batch_size=4, epochs=2,
        pin={"stored": "packed", "cache": 8 << 20, "workers": 1},
    )
    assert plan.file == str(file) and file.read_text() == plan.text
    assert "Best for 2 epochs" in str(plan)
    with meetpoint.Loader(dataset, recipe=RECIPE, batch_size=4, shuffle=True) as plain:
        expected = batches(plain)
    with meetpoint.Loader(plan=file) as loader:
        assert loader.batch_size == 4
        for one, other in zip(batches(loader), expected):
            assert np.array_equal(one, other)
        batches(loader)
        assert loader.explain().cache["hits"] > 0
    with pytest.raises(meetpoint.SettingError, match="another recipe: operation 2"):
        meetpoint.Loader(plan=file, recipe=T.Compose([T.Resize((25, 25))]))
    with pytest.raises(meetpoint.SettingError, match="no plan fits"):
        meetpoint.plan(RECIPE, dataset, profile=tmp_path / "results.csv", memory_limit=1000)
    with pytest.raises(TypeError, match="needs dataset"):
        meetpoint.Loader(recipe=RECIPE)


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a driver")
def test_a_gpu_that_cannot_be_used_is_one_error_and_nothing_is_printed(dataset, capfd):
    for function in (meetpoint.profile, meetpoint.plan):
        with pytest.raises(meetpoint.GpuError, match="no NVIDIA driver") as raised:
            function(RECIPE, dataset, gpu_decode="cuda:0", samples=2, runs=1)
        assert raised.value.cause == "gpu_no_driver"
        # An option of another program.
        assert raised.value.remedy.endswith("(docker: --gpus all)")
    assert capfd.readouterr() == ("", "")


def test_a_gpu_that_is_false_is_none(dataset):
    profiled = meetpoint.profile(
        RECIPE, dataset, samples=2, runs=1, codecs=["none"], gpu_decode=False
    )
    assert profiled.results
    plan = meetpoint.plan(
        RECIPE, dataset, samples=2, runs=1, gpu_decode=False, step=86_400, device="emulated"
    )
    assert "gpu_decode" not in plan.text


@pytest.mark.parametrize("step", [float("nan"), float("inf"), 1e308, 10**400, 0, -1.0, 86_401, "1s"])
def test_a_step_out_of_its_range_is_refused(dataset, step):
    with pytest.raises(meetpoint.SettingError, match="step is .* above 0 and at most 86400, a day"):
        meetpoint.plan(RECIPE, dataset, step=step)


@pytest.mark.parametrize(
    "function, wrong",
    [
        (meetpoint.profile, {"epochs": 2.5}),
        (meetpoint.profile, {"samples": 1}),
        (meetpoint.profile, {"runs": 1001}),
        (meetpoint.profile, {"samples": 1000}),
        (meetpoint.profile, {"threads": 2}),
        (meetpoint.profile, {"threads": ["one"]}),
        (meetpoint.profile, {"gpu_decode": "tpu"}),
        (meetpoint.profile, {"batch_size": 4}),
        (meetpoint.profile, {"confidence": 7}),
        (meetpoint.profile, {"storage_limit": "much"}),
        (meetpoint.plan, {"seed": -1}),
        (meetpoint.plan, {"batch_size": 1000}),
        (meetpoint.plan, {"step_gpu": "cuda:0"}),
        (meetpoint.plan, {"goal": "speed"}),
        (meetpoint.plan, {"force": True}),
    ],
)
def test_a_wrong_argument_is_named_as_in_python(dataset, capfd, function, wrong):
    (name,) = wrong
    with pytest.raises(meetpoint.SettingError, match=name) as raised:
        function(RECIPE, dataset, **wrong)
    said = str(raised.value)
    assert "--" not in said and "meetpoint --help" not in said
    assert raised.value.remedy is not None
    assert capfd.readouterr() == ("", "")


def test_remedies_name_arguments_and_functions(dataset, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text("")
    with pytest.raises(meetpoint.SettingError) as raised:
        meetpoint.plan(RECIPE, dataset, file)
    assert (raised.value.cause, raised.value.remedy) == ("exists", "replace it with force=True")
    with pytest.raises(meetpoint.DatasetError, match=r"`meetpoint\.pack\(\)`"):
        meetpoint.profile(RECIPE, tmp_path / "nowhere")
