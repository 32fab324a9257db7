"""Chapter 10 draws recorded runs of decoding, and says so where there is none."""

import json

import matplotlib.pyplot as plt
import pytest

from lib import results
from tests.course.claims import BOOK, read
from tests.course.execution import run, set_up_cells, undone_later
from tests.test_results import decoding_record

CHAPTER = read(BOOK / "10-kv-cache.ipynb")
# What reads records, in order. `measure` is not among them: a made-up run stands in its place.
READING = ("recorded", "ratio-table", "fig-kv-times", "fig-kv-ratio", "fig-kv-roofline")
CPU = {"device_type": "cpu", "versions": {"python": "3.99", "torch": "9.9"}}
LIVE = decoding_record(device="This machine", dtype="float32", **CPU)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Run the cells that read records, and return what they drew: by cell, the figure."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    sources = {cell.id: cell.source for cell in CHAPTER.notebook.cells}

    def run_page(**records):
        for name, record in records.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(record))
        drawn = {}
        with undone_later():
            space = {"__name__": "chapter"}
            for cell in set_up_cells(CHAPTER):
                run(cell.source, space, cell.id)
            space["live"] = LIVE
            for cell in READING:
                plt.close("all")
                run(sources[cell], space, cell)
                if plt.get_fignums():
                    drawn[cell] = plt.gcf()
        return drawn

    yield run_page
    plt.close("all")


def words(figure):
    """Titles and legends."""
    legends = [entry.get_text() for ax in figure.axes for entry in ax.get_legend().get_texts()]
    return " | ".join([ax.get_title() for ax in figure.axes] + legends)


def test_without_a_record_the_page_says_so_and_draws_this_machine(page, capsys):
    drawn = page()
    printed = capsys.readouterr().out
    assert "no recorded GPU run in the repository" in printed
    assert printed.count("first quartile above 1.2 from: t = 16") == 1
    assert {name: len(figure.axes) for name, figure in drawn.items()} == {
        "fig-kv-times": 1,
        "fig-kv-ratio": 1,
        "fig-kv-roofline": 1,
    }
    assert "This machine" in words(drawn["fig-kv-roofline"])


def test_a_record_is_named_and_drawn_beside_this_machine(page, capsys):
    never = {**LIVE["runs"][0], "uncached": LIVE["runs"][0]["cached"], "batch_size": 3}
    record = decoding_record(runs=[LIVE["runs"][0], never])
    drawn = page(kv_cache_made_up=record, other={"arms": []})
    printed = capsys.readouterr().out
    assert "no recorded GPU run" not in printed
    for part in ("Made-up 9000, bfloat16", "torch 9.9", "cuda 99.0", "2001-02-03", "abcdef0"):
        assert part in printed
    # ridge 6e14 / 2e12 = 300; 1.2 * 2 * 300 / 2 = 360 tokens, divided by 2 or by 3 texts
    assert "peak 600,000 Gop/s, bandwidth 2,000 GB/s,\nridge 300.0 op/byte" in printed
    assert "t = 180\n" in printed
    assert "t = 120\n" in printed
    assert printed.count("first quartile above 1.2 from: t = 16") == 2
    assert printed.count("first quartile above 1.2 from: none") == 1
    assert len(drawn["fig-kv-times"].axes) == len(drawn["fig-kv-roofline"].axes) == 2
    for name in ("fig-kv-times", "fig-kv-roofline"):
        assert "This machine, float32 | Made-up 9000, bfloat16" in words(drawn[name])
    assert len(drawn["fig-kv-ratio"].axes[0].lines) == 3 + 1  # three runs, and the line at 1.2
    assert "Made-up 9000" in words(drawn["fig-kv-ratio"])


def test_points_under_the_roof_are_operations_per_second(page):
    (ax,) = page()["fig-kv-roofline"].axes
    cached = next(line for line in ax.lines if line.get_label() == "with cache")
    # By hand, for t = 16: two texts, three layers, 4 query heads and 2 KV heads of width 5.
    output, b = 17 * 20, 4
    operations = 2 * (2 * 9_000 + 4 * 3 * 20 * 16 + 2 * output)
    moved = b * (9_000 + output + 2 * 2 * 3 * 10 * 16)
    assert cached.get_xdata()[1] == pytest.approx(operations / moved)
    assert cached.get_ydata()[1] == pytest.approx(operations / 1.0e-3)
    full = next(line for line in ax.lines if line.get_label() == "without")
    operations = 2 * (2 * 9_000 * 16 + 4 * 3 * 20 * 16**2 + 2 * output)
    assert full.get_xdata()[1] == pytest.approx(operations / moved)
    assert full.get_ydata()[1] == pytest.approx(operations / 1.5e-3)


def test_a_record_of_the_cpu_is_no_gpu_run(page, capsys):
    page(kv_cache_cpu=decoding_record(**CPU))
    printed = capsys.readouterr().out
    assert "no recorded GPU run in the repository" in printed
    assert "recorded: Made-up 9000" in printed


def test_a_cpus_record_under_a_gpus_name_stops_the_page(page):
    record = decoding_record(**{**CPU, "device_type": "cuda"})
    with pytest.raises(ValueError, match=r"kv_cache_renamed\.json: versions\.cuda is missing"):
        page(kv_cache_renamed=record)


def test_what_a_record_found_is_said(page, capsys):
    fit = {"exponent": 0.9, "longer_half": 1.75}
    runs = decoding_record()["runs"]
    runs[0]["fits"] = {"graph": {"uncached": fit, "cached": fit, "crossover": 64}}
    page(kv_cache_made_up=decoding_record(runs=runs))
    printed = capsys.readouterr().out
    assert "ceilings: 2,000 GB/s, 600.0 TFLOP/s" in printed
    assert "model, graph: exponent 1.75 without, 1.75 with; pays from t = 64" in printed


def test_a_record_that_lacks_something_stops_the_page(page):
    record = decoding_record()
    del record["date"]
    with pytest.raises(ValueError, match=r"kv_cache_broken\.json: date is missing"):
        page(kv_cache_broken=record)
