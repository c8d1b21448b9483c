"""The findings of the PRESTO paper as questions to measured strategies.

Isenko et al., "Where Is My Training Bottleneck? Hidden Trade-Offs in Deep Learning Preprocessing
Pipelines", SIGMOD 2022. Each function takes the strategies of several pipelines and says whether a
finding holds, with the figures. Nothing here measures; ``presto.py`` does. Only the standard
library.
"""

import statistics
from dataclasses import dataclass, field
from typing import Dict, List, Optional

#: Time that the paper's framework takes for each sample, whatever its size: 138.3 s for 1.5 million
#: samples from its application cache, 167.3 s from the page cache, 173.5 s without a cache.
PRESTO_OVERHEAD_US = {"application": 92.0, "page": 112.0, "cold": 116.0}

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold here", "not tested"
NOISY = "not decided: the measurements vary by more than the effect"


@dataclass
class Strategy:
    """A measured strategy: what is stored, with which codec, read from which cache."""

    stored: str
    #: Operations executed before storing; 0 for files and packed files.
    operations: int
    codec: str
    cache: str
    per_second: float
    stored_bytes: float
    offline_seconds: float = 0.0
    threads: int = 1


@dataclass
class Finding:
    """A finding of the paper, and what was seen of it here."""

    number: int
    what: str
    verdict: str
    #: One line for each figure, such as ``presto-cv: 1.05``.
    figures: List[str] = field(default_factory=list)
    why: str = ""


Pipelines = Dict[str, List[Strategy]]


def select(strategies: List[Strategy], **wanted: object) -> List[Strategy]:
    """Those with these values."""
    return [it for it in strategies
            if all(getattr(it, name) == value for name, value in wanted.items())]


def rate(strategies: List[Strategy], **wanted: object) -> Optional[float]:
    """Samples per second of the fastest of them; ``None`` without any."""
    return max((it.per_second for it in select(strategies, **wanted)), default=None)


def most_prepared(strategies: List[Strategy]) -> Strategy:
    """The strategy that executes most operations offline."""
    return max(select(strategies, codec="none", cache="cold"), key=lambda it: it.operations)


def concatenating(pipelines: Pipelines) -> Finding:
    """1: files in one container are read 1.4 to 9 times as fast as files of their own."""
    gains = {name: rate(rows, stored="packed", codec="none", cache="cold")
             / rate(rows, stored="files", codec="none", cache="cold")
             for name, rows in pipelines.items()}
    reached = sum(gain >= 1.4 for gain in gains.values())
    verdict = HOLDS if reached == len(gains) else PARTLY if reached else FAILS
    return Finding(1, "concatenating files alone makes reading 1.4 to 9 times as fast", verdict,
                   [f"{name}: {gain:.2f}" for name, gain in gains.items()],
                   "" if verdict == HOLDS else
                   "the paper read from hard disks over a network, where opening a file costs "
                   "milliseconds; where the processor limits a pipeline, a local drive hides it")


def last_is_not_best(pipelines: Pipelines) -> Finding:
    """2: the strategy that prepares everything is not the fastest in 4 of 7 pipelines."""
    figures, exceptions = [], 0
    for name, rows in pipelines.items():
        cold = select(rows, codec="none", cache="cold")
        best, last = max(cold, key=lambda it: it.per_second), most_prepared(rows)
        exceptions += best.stored != last.stored
        figures.append(f"{name}: best {best.stored} {best.per_second:.0f}/s, "
                       f"last {last.stored} {last.per_second:.0f}/s")
    verdict = HOLDS if exceptions * 2 >= len(pipelines) else PARTLY if exceptions else FAILS
    return Finding(2, "preparing everything offline is not the fastest in 4 of 7 pipelines",
                   verdict, figures, f"an earlier point is faster in {exceptions} of "
                   f"{len(pipelines)} pipelines")


def shrink_early(stored_after: float, stored_before: float, bytes_ratio: float) -> Finding:
    """3: an operation that shrinks samples is worth most before one that enlarges them.

    Rates of a stored form in which channels were merged, and of one in which they were not.
    """
    gain = stored_after / stored_before
    verdict = HOLDS if gain >= 1.1 else PARTLY if gain > 1.0 else FAILS
    return Finding(3, "shrinking samples early wins (grey before storing)", verdict,
                   [f"{gain:.2f} times as fast, {bytes_ratio:.2f} times fewer bytes"],
                   "" if verdict == HOLDS else "reading is not what limits this pipeline")


def compression(pipelines: Pipelines) -> Finding:
    """4: compression raises throughput only where it saves most of the bytes."""
    figures, useful, useless, wrong, noise = [], 0, 0, 0, []
    for name, rows in pipelines.items():
        for plain in select(rows, codec="none", cache="cold"):
            for codec in sorted({it.codec for it in rows} - {"none"}):
                packed = select(rows, codec=codec, cache="cold", stored=plain.stored,
                                threads=plain.threads)
                if not packed or plain.stored == "files":
                    continue
                saved = 1 - packed[0].stored_bytes / plain.stored_bytes
                gain = packed[0].per_second / plain.per_second
                if gain >= 1.3 and saved < 0.05:
                    # As many bytes are read, and more is computed: this is chance.
                    noise.append(gain)
                    continue
                useful += gain >= 1.15 and saved >= 0.7
                wrong += gain >= 1.15 and saved < 0.4
                useless += gain < 1.15
                if gain >= 1.15 or saved >= 0.7:
                    figures.append(f"{name} {plain.stored} {codec}: saves {100 * saved:.0f} %, "
                                   f"{gain:.2f} times as fast")
    verdict = FAILS if wrong > useful else HOLDS if useful else PARTLY
    if noise:
        return Finding(4, "compression pays only where it saves 73 to 93 % of the bytes", NOISY,
                       figures, f"{len(noise)} stored forms of unchanged size seemed up to "
                       f"{max(noise):.1f} times as fast with a codec")
    return Finding(4, "compression pays only where it saves 73 to 93 % of the bytes", verdict,
                   figures, f"it made {useless} other stored forms no faster"
                   + ("" if useful else ", and none faster: this drive reads faster than samples "
                      "are decompressed"))


def shuffling(seconds_sequential: float, seconds_shuffled: float, samples: int) -> Finding:
    """5: a shuffle buffer costs 9.6 ms for each sample, whatever the pipeline."""
    cost_us = 1e6 * (seconds_shuffled - seconds_sequential) / samples
    return Finding(5, "shuffling costs a constant 9.6 ms for each sample", FAILS,
                   [f"{cost_us:.2f} us of processor time per sample, shuffled against in order"],
                   "there is no shuffle buffer: the order is a permutation that is computed, and "
                   "samples are read at their positions in it")


def tuning(pipelines: Pipelines) -> Finding:
    """6: the best strategy is 3 to 13 times as fast as nothing offline."""
    gains = {name: max(it.per_second for it in select(rows, cache="cold"))
             / rate(rows, stored="files", codec="none", cache="cold", threads=1)
             for name, rows in pipelines.items()}
    reached = sum(gain >= 3 for gain in gains.values())
    verdict = HOLDS if reached == len(gains) else PARTLY if reached else FAILS
    return Finding(6, "the best strategy is 3 to 13 times as fast as the untuned one", verdict,
                   [f"{name}: {gain:.1f}" for name, gain in gains.items()],
                   f"in {reached} of {len(gains)} pipelines")


def sampling(pipelines: Pipelines, partial: Pipelines) -> Finding:
    """7: a part of the dataset does not rank the strategies reliably."""
    figures, agreeing = [], 0
    for name, few in partial.items():
        all_rows = pipelines[name]
        best = max(select(all_rows, cache="cold"), key=lambda it: it.per_second)
        guess = max(select(few, cache="cold"), key=lambda it: it.per_second)
        same = select(all_rows, stored=guess.stored, codec=guess.codec, cache="cold",
                      threads=guess.threads)[0]
        regret = 1 - same.per_second / best.per_second
        agreeing += regret < 0.1
        figures.append(f"{name}: choosing by a part loses {100 * regret:.1f} % of the throughput")
    verdict = HOLDS if agreeing < len(partial) else FAILS
    return Finding(7, "profile on the entire dataset, since a part misleads", verdict, figures,
                   "the samples here are alike and fit in memory, so that full caches and links "
                   "cannot show" if verdict == FAILS else "")


def page_cache(pipelines: Pipelines) -> Finding:
    """8: the page cache helps only without a bottleneck of the processor."""
    figures, helped = [], 0
    for name, rows in pipelines.items():
        for stored in ("files", most_prepared(rows).stored):
            cold = rate(rows, stored=stored, codec="none", cache="cold")
            page = rate(rows, stored=stored, codec="none", cache="page")
            if cold is None or page is None:
                continue
            helped += page / cold >= 1.15
            figures.append(f"{name} {stored}: {page / cold:.2f}")
    verdict = HOLDS if 0 < helped < len(figures) else PARTLY
    return Finding(8, "the page cache helps only where the dataset fits in memory and the processor "
                   "is not the limit", verdict, figures,
                   "only the second condition was tested: all sets fit in memory")


def application_cache(pipelines: Pipelines) -> Finding:
    """9: an application cache is 1.3 to 4.6 times as fast as the page cache."""
    figures, gains = [], []
    for name, rows in pipelines.items():
        last = most_prepared(rows).stored
        rates = {cache: rate(rows, stored=last, codec="none", cache=cache)
                 for cache in ("cold", "page", "application")}
        if None in rates.values():
            continue
        gains.append(rates["application"] / rates["page"])
        figures.append(f"{name} {last}: {gains[-1]:.2f} over the page cache, "
                       f"{rates['application'] / rates['cold']:.2f} over none")
    reached = sum(gain >= 1.3 for gain in gains)
    verdict = HOLDS if reached == len(gains) else PARTLY if reached else FAILS
    return Finding(9, "an application cache is 1.3 to 4.6 times as fast as the page cache", verdict,
                   figures, f"in {reached} of {len(gains)} pipelines, for the last strategy")


def small_samples(sweep: List[Dict[str, float]]) -> Finding:
    """10: samples of at most 0.08 MB lose throughput sharply."""
    large = statistics.median(it["seconds_per_byte"] for it in sweep if it["bytes"] >= 640_000)
    figures, losses = [], []
    for it in sweep:
        loss = it["seconds_per_byte"] / large
        if it["bytes"] <= 80_000:
            losses.append(loss)
        figures.append(f"{it['bytes'] / 1e6:.2f} MB: {loss:.2f} times the time of a large byte")
    verdict = HOLDS if max(losses) >= 4 else PARTLY if max(losses) >= 1.5 else FAILS
    return Finding(10, "samples of at most 0.08 MB lose throughput sharply (8 to 9 times at "
                   "0.01 MB)", verdict, figures,
                   "the time for each sample is small beside that of its bytes"
                   if verdict == FAILS else "")


def swapping(grey_last: float, grey_first: float) -> Finding:
    """11: grey before or after the resize makes no significant difference."""
    gain = grey_first / grey_last
    verdict = HOLDS if 0.9 <= gain <= 1.1 else FAILS
    return Finding(11, "grey before or after the resize makes no difference (a comment in the "
                   "paper's source records 1.11)", verdict, [f"grey first: {gain:.2f} times as fast"],
                   "" if verdict == HOLDS else "a resize of one channel is cheaper than of three")


def overhead(sweep: List[Dict[str, float]]) -> Dict[str, float]:
    """Time of a sample and of a byte: the least-squares line through the sweep, by relative error.

    ``seconds`` of a sample of ``bytes`` is ``sample_us`` plus ``byte_ns`` times the bytes.
    """
    rows = [(1 / it["seconds"], it["bytes"] / it["seconds"]) for it in sweep]
    # Normal equations of a + b * bytes = seconds, each row divided by its seconds.
    aa = sum(a * a for a, _ in rows)
    ab = sum(a * b for a, b in rows)
    bb = sum(b * b for _, b in rows)
    a1, b1 = sum(a for a, _ in rows), sum(b for _, b in rows)
    determinant = aa * bb - ab * ab
    sample, byte = (a1 * bb - b1 * ab) / determinant, (aa * b1 - ab * a1) / determinant
    return {"sample_us": 1e6 * sample, "byte_ns": 1e9 * byte}
