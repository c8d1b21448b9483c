"""The findings of the PRESTO paper, checked on the paper's own figures: all of them must hold.

The figures are those of the paper's tables (SIGMOD 2022); compression figures are read off a chart.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

STUDIES = Path(__file__).parents[1] / "studies"
spec = importlib.util.spec_from_file_location(
    "presto_findings", STUDIES / "presto_findings.py"
)
assert spec is not None and spec.loader is not None
findings: Any = importlib.util.module_from_spec(spec)
sys.modules["presto_findings"] = findings
spec.loader.exec_module(findings)

#: Stored form, operations, GB, cold, page cache, GZIP: samples per second, share saved.
PAPER: Dict[str, List[tuple[str, int, float, float, float, float, float]]] = {
    "CV": [("files", 0, 146.9, 107, 126, 0, 0), ("packed", 0, 147.0, 962, 957, 1117, 0.0087),
           ("1-decode", 1, 842.5, 746, 753, 590, 0.2899),
           ("2-resize", 2, 347.3, 1789, 1808, 1745, 0.2303),
           ("3-normalize", 3, 1389, 576, 580, 963, 0.7272)],
    "CV2-JPG": [("files", 0, 2.54, 88, 302, 0, 0), ("packed", 0, 2.60, 288, 308, 261, 0.0073),
                ("1-decode", 1, 65.7, 64, 198, 59, 0.412),
                ("2-resize", 2, 1.44, 1571, 2541, 1334, 0.245),
                ("3-normalize", 3, 5.77, 643, 2044, 936, 0.737)],
    "CV2-PNG": [("files", 0, 85.2, 15, 18, 0, 0), ("packed", 0, 87.2, 21, 21, 17.4, 0.0028),
                ("1-decode", 1, 65.7, 73, 208, 98, 0.831),
                ("2-resize", 2, 1.44, 1786, 3285, 2171, 0.806),
                ("3-normalize", 3, 5.77, 631, 2201, 1341, 0.930)],
    "NLP": [("files", 0, 7.71, 6, 5, 0, 0), ("packed", 0, 7.72, 6, 6, 6.2, 0.796),
            ("1-decode", 1, 0.594, 251, 252, 254, 0.607),
            ("2-encode", 2, 0.648, 1726, 1764, 1665, 0.654),
            ("3-embed", 3, 490.7, 131, 138, 111, 0.279)],
    "NILM": [("files", 0, 39.6, 42, 43, 0, 0), ("packed", 0, 39.6, 42, 43, 0, 0),
             ("1-decode", 1, 262.5, 55, 55, 42, 0.16), ("2-features", 2, 3.09, 9053, 9890, 5366, 0.058)],
}


def strategies(rows: List[tuple[str, int, float, float, float, float, float]]) -> List[Any]:
    made = []
    for stored, operations, gigabytes, cold, page, gzip, saved in rows:
        for cache, rate in (("cold", cold), ("page", page)):
            made.append(findings.Strategy(stored, operations, "none", cache, rate, gigabytes))
        if gzip:
            size = gigabytes * (1 - saved)
            made.append(findings.Strategy(stored, operations, "zstd", "cold", gzip, size))
    return made


PIPELINES = {name: strategies(rows) for name, rows in PAPER.items()}


def test_the_last_strategy_is_not_the_best_in_four_pipelines() -> None:
    found = findings.last_is_not_best(PIPELINES)
    assert found.verdict == findings.HOLDS and found.why.startswith("an earlier point is faster in 4")


def test_concatenating_gains_in_the_pipelines_with_images() -> None:
    images = {name: PIPELINES[name] for name in ("CV", "CV2-JPG", "CV2-PNG")}
    found = findings.concatenating(images)
    assert found.verdict == findings.HOLDS
    assert found.figures == ["CV: 8.99", "CV2-JPG: 3.27", "CV2-PNG: 1.40"]


def test_compression_pays_where_it_saves_most() -> None:
    found = findings.compression(PIPELINES)
    assert found.verdict == findings.HOLDS
    assert "CV2-PNG 3-normalize zstd: saves 93 %, 2.13 times as fast" in found.figures


def test_a_gain_without_fewer_bytes_is_called_noise() -> None:
    rows = [*PAPER["CV"][:3], ("2-resize", 2, 347.3, 1000, 1808, 1745, 0.0)]
    found = findings.compression({"CV": strategies(rows)})
    assert found.verdict == findings.NOISY


def test_tuning_gains_more_than_three_times_everywhere() -> None:
    assert findings.tuning(PIPELINES).verdict == findings.HOLDS


def test_the_page_cache_helps_some_strategies_only() -> None:
    assert findings.page_cache(PIPELINES).verdict == findings.HOLDS


def test_a_finding_that_does_not_hold_is_called_so() -> None:
    flat = {"flat": strategies([("files", 0, 1.0, 100, 100, 0, 0), ("packed", 0, 1.0, 100, 100, 0, 0),
                                ("1-decode", 1, 1.0, 110, 110, 0, 0)])}
    assert findings.concatenating(flat).verdict == findings.FAILS
    assert findings.last_is_not_best(flat).verdict == findings.FAILS
    assert findings.tuning(flat).verdict == findings.FAILS


#: Megabytes of a sample, seconds to read 15 GB from the application cache.
SWEEP = [(20.5, 0.1), (10.2, 0.2), (5.1, 0.3), (2.6, 0.5), (1.3, 1.1), (0.64, 2.2), (0.32, 4.3),
         (0.16, 8.5), (0.08, 17.4), (0.04, 36.1), (0.02, 70.3), (0.01, 138.3)]


def test_the_time_of_a_sample_in_the_paper_is_what_its_text_implies() -> None:
    sweep = []
    for megabytes, seconds in SWEEP:
        samples = 15e9 / (megabytes * 1e6)
        each = seconds / samples
        size = megabytes * 1e6
        sweep.append({"bytes": size, "seconds": each, "seconds_per_byte": each / size})
    line = findings.overhead(sweep)
    assert line["sample_us"] == pytest.approx(findings.PRESTO_OVERHEAD_US["application"], rel=0.05)
    assert findings.small_samples(sweep).verdict == findings.HOLDS


def test_the_line_through_a_sweep_is_exact_for_a_line() -> None:
    sweep = [{"bytes": size, "seconds": 2e-6 + 1e-10 * size} for size in (1e4, 1e5, 1e6, 1e7)]
    line = findings.overhead(sweep)
    assert line == pytest.approx({"sample_us": 2.0, "byte_ns": 0.1})
