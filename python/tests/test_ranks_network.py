"""Ranks over TCP as on several hosts: secrets, attempts, a shared device, other numbers of ranks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest
from conftest import COUNT

import meetpoint
from meetpoint import transforms as T

# A limit that no test reaches.
LIMIT = 300
BATCHES = 22
SECRET = "0123456789abcdef0123456789abcdef"

RANK = """
import json, os, signal, sys, meetpoint
from meetpoint import transforms as T
job = json.loads(sys.argv[1])
rank = job["rank"]
if job["torch"]:
    sys.path.insert(0, job["tests"])
    import fake_torch
    from pathlib import Path
    from meetpoint import _addresses
    distributed = fake_torch.install(rank, job["ranks"], Path(job["torch"]))
    # Ranks of one machine that count as those of several.
    _addresses.machine = lambda: f"machine {rank}"
    world = {}
else:
    world = {"rank": rank, "world_size": job["ranks"], "rendezvous": job["place"]}
def report(**it):
    print(json.dumps(it), flush=True)
batches = []
try:
    loader = meetpoint.Loader(job["dataset"], recipe=T.Compose([T.CenterCrop(8)]), batch_size=3,
        seed=11, shuffle=True, strategy="wrr", device=job["device"], workers=1, nvtx=False,
        columns=["sample"], rank_timeout=job["timeout"], **world)
    if job["torch"]:
        assert distributed.groups == 0
    if job["states"]:
        loader.load_state_dict(job["states"])
    for batch in loader:
        batches.append(batch["sample"].tolist())
        if len(batches) == job["steps"]:
            report(batches=batches, state=loader.state_dict())
            if job["dies"]:
                os.kill(os.getpid(), signal.SIGKILL)
except meetpoint.RankError as error:
    report(error=str(error))
else:
    kinds = [row["source"] for row in loader.report()["epochs"][0]["records"]]
    report(batches=batches, uneven=loader.report()["uneven"], kinds=kinds)
    loader.close()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(SECRET + "\n")
    return path


@pytest.fixture(scope="module")
def device(dataset: str, token: Path) -> Iterator[str]:
    """A device of another host, which serves all ranks."""
    folder = Path(dataset)
    words = ["device", "serve", "--listen", "tcp://127.0.0.1:0", "--hosts", "16"]
    words += ["--root", f"sets={folder.parent}", "--token-file", str(token), "--allow-shared"]
    command = [sys.executable, "-m", "meetpoint", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()


class Group:
    """Ranks in processes of their own, which meet at a port."""

    def __init__(self, dataset: str, device: str, token: Path) -> None:
        self.common = {"dataset": dataset, "device": device, "tests": str(Path(__file__).parent)}
        self.environment = {
            **{key: it for key, it in os.environ.items() if key not in ("RANK", "WORLD_SIZE")},
            "MEETPOINT_RENDEZVOUS_TOKEN_FILE": str(token),
            "MEETPOINT_DEVICE_TOKEN_FILE": str(token),
        }
        self.place = f"tcp://127.0.0.1:{free_port()}"

    def start(
        self,
        rank: int,
        ranks: int,
        *,
        states: Optional[List[Any]] = None,
        steps: int = 0,
        dies: bool = False,
        torch: str = "",
        timeout: float = 200,
        **environment: str,
    ) -> "subprocess.Popen[str]":
        job = dict(rank=rank, ranks=ranks, states=states, steps=steps, dies=dies, torch=torch)
        job.update(self.common, place=self.place, timeout=timeout)
        return subprocess.Popen(
            [sys.executable, "-c", RANK, json.dumps(job)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **environment},
        )

    def phase(
        self, ranks: int, states: Optional[List[Any]], steps: int
    ) -> List[List[Dict[str, Any]]]:
        """What each rank wrote; after ``steps``, if any, the last one is killed."""
        running = [
            self.start(rank, ranks, states=states, steps=steps, dies=rank == ranks - 1)
            for rank in range(ranks)
        ]
        said = [outputs(process) for process in running]
        if steps:
            assert running[-1].returncode == -signal.SIGKILL
        return said


@pytest.fixture
def group(dataset: str, device: str, token: Path) -> Group:
    return Group(dataset, device, token)


def outputs(process: "subprocess.Popen[str]") -> List[Dict[str, Any]]:
    said, errors = process.communicate(timeout=LIMIT)
    lines = [json.loads(line) for line in said.splitlines()]
    assert lines, errors
    return lines


def numbers(dataset: str) -> Dict[Tuple[int, ...], int]:
    """The number of each batch in the sequence of all ranks."""
    with meetpoint.Loader(
        dataset,
        recipe=T.Compose([T.CenterCrop(8)]),
        batch_size=3,
        seed=11,
        shuffle=True,
        columns=["sample"],
        rank=0,
        world_size=1,
    ) as loader:
        return {tuple(batch["sample"].tolist()): n for n, batch in enumerate(loader)}


def test_4_ranks_then_2_then_3_deliver_the_epoch_and_report_every_repetition(
    dataset: str, group: Group
) -> None:
    known = numbers(dataset)
    came: "Counter[int]" = Counter()
    states: Optional[List[Any]] = None
    for ranks, steps in ((4, 2), (2, 3)):
        said = group.phase(ranks, states, steps)
        # Every rank that lives learns which one was killed.
        for saved, *error in said[:-1]:
            (failure,) = [it["error"] for it in error]
            assert f"rank {ranks - 1} left epoch 0: " in failure, failure
        states = [saved["state"] for saved, *_ in said]
        came.update(known[tuple(batch)] for saved, *_ in said for batch in saved["batches"])
    said = group.phase(3, states, 0)
    ended = [lines[-1] for lines in said]
    assert len({len(it["batches"]) for it in ended}) == 1
    assert all(it["kinds"] == ended[0]["kinds"] for it in ended)
    came.update(known[tuple(batch)] for it in ended for batch in it["batches"])
    rows = ended[0]["uneven"]
    assert all(it["uneven"] == rows for it in ended)
    assert {row["kind"] for row in rows} == {"repeated"}
    repeated = Counter(number for row in rows for number in row["batches"])
    assert repeated and came == Counter(range(BATCHES)) + repeated


def test_ranks_of_several_hosts_meet_through_torch_distributed(
    group: Group, tmp_path: Path
) -> None:
    for given in (SECRET, ""):
        folder = tmp_path / f"group{len(given)}"
        folder.mkdir()
        more = {"MEETPOINT_RENDEZVOUS_HOST": "127.0.0.1", "TORCHELASTIC_RUN_ID": "run"}
        more.update(MEETPOINT_RENDEZVOUS_TOKEN_FILE="", MEETPOINT_RENDEZVOUS_TOKEN=given)
        running = [group.start(rank, 2, torch=str(folder), **more) for rank in range(2)]
        (first,), (second,) = [outputs(process) for process in running]
        samples = [sample for it in (first, second) for batch in it["batches"] for sample in batch]
        assert sorted(samples) == list(range(COUNT))
        # A token that all ranks have does not cross the network.
        gathered = b"".join(path.read_bytes() for path in folder.iterdir())
        assert SECRET.encode() not in gathered


def test_ranks_of_which_some_have_no_token_are_refused_at_once(
    group: Group, tmp_path: Path
) -> None:
    tokens = [str(group.environment["MEETPOINT_RENDEZVOUS_TOKEN_FILE"]), ""]
    running = [
        group.start(rank, 2, torch=str(tmp_path), MEETPOINT_RENDEZVOUS_TOKEN_FILE=token)
        for rank, token in enumerate(tokens)
    ]
    for process in running:
        (said,) = outputs(process)
        assert "ranks [1] have no token" in said["error"]


def test_a_rank_of_an_earlier_attempt_is_refused_and_the_new_ranks_meet(group: Group) -> None:
    new = {"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_RESTART_COUNT": "2"}
    new.update(LOCAL_WORLD_SIZE="2", WORLD_SIZE="2", RANK="0")
    first = group.start(0, 2, **new)
    straggler = group.start(1, 2, **{**new, "TORCHELASTIC_RESTART_COUNT": "1"})
    (said,) = outputs(straggler)
    assert "rank 1 belongs to attempt 1 of run run, rank 0 to attempt 2" in said["error"]
    second = group.start(1, 2, **new)
    samples = [
        sample
        for process in (first, second)
        for batch in outputs(process)[-1]["batches"]
        for sample in batch
    ]
    assert sorted(samples) == list(range(COUNT))


def test_a_later_attempt_ends_the_ranks_that_still_wait(group: Group) -> None:
    old = group.start(0, 2, MEETPOINT_RENDEZVOUS_ATTEMPT="1")
    new = [group.start(rank, 2, MEETPOINT_RENDEZVOUS_ATTEMPT="2") for rank in (1, 0)]
    # The old rank 0 was replaced, or it started when the new ranks had already met; it then waits.
    for process in new:
        assert outputs(process)[-1]["batches"]
    old.kill()
    old.communicate()


def test_hosts_of_torchrun_may_count_restarts_differently(group: Group, tmp_path: Path) -> None:
    """A host whose ranks did not fail restarts them without counting."""
    for torch in ("", str(tmp_path)):
        more = {"TORCHELASTIC_RUN_ID": "run", "LOCAL_WORLD_SIZE": "1", "WORLD_SIZE": "2"}
        more["MEETPOINT_RENDEZVOUS_HOST"] = "127.0.0.1"
        running = [
            group.start(
                rank, 2, torch=torch, **more, RANK=str(rank), TORCHELASTIC_RESTART_COUNT=str(rank)
            )
            for rank in range(2)
        ]
        first, second = [outputs(process)[-1] for process in running]
        assert first["kinds"] == second["kinds"]


def test_a_wrong_token_is_refused_in_one_line(group: Group, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("fedcba9876543210fedcba9876543210")
    first = group.start(0, 2, timeout=LIMIT)
    wrong = group.start(1, 2, MEETPOINT_RENDEZVOUS_TOKEN_FILE=str(other))
    (said,) = outputs(wrong)
    assert "does not have the token of this rank" in said["error"]
    assert "\n" not in said["error"]
    # Rank 0 still waits for the real one.
    second = group.start(1, 2)
    assert [outputs(process)[-1]["kinds"] for process in (first, second)]


TWO_LOADERS = """
import sys, meetpoint
from meetpoint import transforms as T
dataset, device, place, rank = sys.argv[1:]
loaders = [meetpoint.Loader(dataset, recipe=T.Compose([T.CenterCrop(8)]), batch_size=size,
    strategy="wrr", device=device, workers=1, rank=int(rank), world_size=2, rendezvous=place,
    rank_timeout=200) for size in (3, 6)]
print([sum(1 for _ in loader) for loader in loaders])
"""


def test_several_loaders_use_the_address_one_after_the_other(
    dataset: str, device: str, group: Group
) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_LOADERS, dataset, device, group.place, str(rank)],
            stdout=subprocess.PIPE,
            text=True,
            env=group.environment,
        )
        for rank in range(2)
    ]
    for process in running:
        assert json.loads(process.communicate(timeout=LIMIT)[0]) == [11, 6]


def test_two_processes_with_the_same_rank_are_refused(group: Group) -> None:
    running = [group.start(rank, 3) for rank in (0, 1, 1)]
    for process in running:
        (said,) = outputs(process)
        assert "two processes are rank 1" in said["error"]


def loader(dataset: str, **more: Any) -> meetpoint.Loader[Any]:
    settings: Dict[str, Any] = dict(
        recipe=T.Compose([T.CenterCrop(8)]),
        device=meetpoint.Emulated(allow_shared=True),
        rank=0,
        world_size=2,
        rendezvous="tcp://127.0.0.1:0",
        rank_timeout=0.2,
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


def test_what_cannot_be_a_rendezvous_is_refused(
    dataset: str, token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEETPOINT_RENDEZVOUS_TOKEN", "MEETPOINT_RENDEZVOUS_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(meetpoint.SettingError, match="have no token") as raised:
        loader(dataset)
    assert "rendezvous_token_file" in str(raised.value.remedy)
    with pytest.raises(meetpoint.RankError, match="rank 1 did not connect"):
        loader(dataset, rendezvous_token_file=token)
    short = tmp_path / "short"
    short.write_text("short")
    for wrong in (short, tmp_path / "none"):
        with pytest.raises(meetpoint.SettingError, match="token"):
            loader(dataset, rendezvous_token_file=wrong)
    with pytest.raises(meetpoint.SettingError, match="rank_link_timeout"):
        loader(dataset, rendezvous_token_file=token, rank_link_timeout=0)
    monkeypatch.setenv("MEETPOINT_RENDEZVOUS_TOKEN", "short")
    with pytest.raises(meetpoint.SettingError, match="fewer than 16"):
        loader(dataset)
    monkeypatch.setenv("MEETPOINT_RENDEZVOUS_ATTEMPT", "-1")
    with pytest.raises(meetpoint.SettingError, match="MEETPOINT_RENDEZVOUS_ATTEMPT"):
        loader(dataset, rendezvous_token_file=token)
