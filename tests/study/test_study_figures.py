"""Figures of a study: their numbers are those of the study's own fits, files are whole and repeatable."""

import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from making import write_task
from matplotlib import style
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import sem, spearmanr

from temperance import InputError, make_calibrator
from temperance.calibrators import method_style
from temperance.calibrators.external_methods import find_methods
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.core.logit_rows import LogitRows
from temperance.display import TemperatureDisplay
from temperance.display.chart import Intervals, shorten
from temperance.study import Results, figures, find_tasks, task_figures
from temperance.study import results as study_results
from temperance.study.comparisons import rank_methods
from temperance.study.figures import (
    FIGURES,
    ON_A_TASK,
    SUFFIXES,
    averages,
    draw_figure,
    figure_task,
    save_figure,
)
from temperance.study.protocol import WorkUnit
from temperance.study.store import FILE_NAME, ResultStore
from temperance.study.task_figures import (
    class_temperatures,
    compare_temperatures,
    entropy_temperatures,
    two_temperatures,
)
from temperance.study.tasks import load_task

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def fitted(task, key, unit=None):
    """Fit a method of the registry to the validation rows of a task, or to those of a cell."""
    val = load_task(task).val
    rows = val if unit is None else val.take(unit.rows())
    options = {} if unit is None or key != "pts" else {"random_state": unit.random_state()}
    return make_calibrator(key, **options).fit(rows.logits, rows.labels)


# ---- one task


def nll_of_class(temperature, logits, k):
    return -log_softmax(logits / temperature, axis=1)[:, k].mean()


def test_a_class_has_the_temperature_of_ts_on_its_test_rows_and_the_mean_of_lts(results, task):
    chart = class_temperatures(results, task)
    test = load_task(task).test
    lts = fitted(task, "lts").temperature(test.logits)
    (best,) = (mark for mark in chart.marks if isinstance(mark, Intervals))
    (mean,) = (mark for mark in chart.marks if mark.method == "lts")
    classes = [int(name) for _, name in chart.y.ticks]
    assert sorted(classes) == [0, 1, 2, 3]
    for k, optimum, found in zip(classes, best.value, mean.x, strict=True):
        rows = np.flatnonzero(test.labels == k)
        best_t = minimize_scalar(nll_of_class, bounds=(0.05, 20), args=(test.logits[rows], k)).x
        assert optimum == pytest.approx(best_t, rel=1e-3)
        assert found == pytest.approx(lts[rows].mean())


@pytest.mark.parametrize(("method", "draws"), [("hts", 10), ("pts", 1)])
def test_few_rows_are_the_draws_of_the_study(method, draws, results, task):
    *few, whole = (
        mark for mark in entropy_temperatures(results, task, method).marks if mark.method == method
    )
    assert [mark.faint for mark in few] == [True] * draws
    assert few[0].label.startswith(f"{method.upper()}, 30 rows")
    assert whole.label.startswith(f"{method.upper()}, all 200 rows")
    test = load_task(task).test
    entropy = log_normalised_entropy(LogitRows(test.logits))
    order = np.argsort(entropy, kind="stable")
    index = order[np.searchsorted(entropy[order], whole.x)]
    units = [WorkUnit(task, 30, draw, results.seed, find_methods([method])) for draw in range(draws)]
    units.append(WorkUnit(task, 200, 0, results.seed, find_methods([method])))
    for mark, unit in zip([*few, whole], units, strict=True):
        np.testing.assert_allclose(mark.y, fitted(task, method, unit).temperature(test.logits[index]))


def test_200_rows_are_few_if_the_study_has_them_and_no_fit_is_drawn_twice(results, task):
    results.sizes = [30, 200, 400]
    marks = [mark for mark in entropy_temperatures(results, task, "hts").marks if mark.method == "hts"]
    assert [mark.label for mark in marks] == ["HTS, all 200 rows"]  # all rows of the task


def test_bins_of_equal_width_hold_the_rows_between_their_edges(task):
    test = load_task(task).test
    data = TemperatureDisplay.from_calibrators({}, test.logits, test.labels, bins=20, strategy="width")
    count, edges = np.histogram(log_normalised_entropy(LogitRows(test.logits)), 20)
    kept = count >= 10
    assert 2 < kept.sum() < 20
    np.testing.assert_array_equal(data.count, count[kept])
    assert ((edges[:-1][kept] <= data.centre) & (data.centre <= edges[1:][kept])).all()


def test_another_strategy_is_refused_with_a_message(task):
    test = load_task(task).test
    with pytest.raises(InputError, match="strategy must be one of 'width', 'mass'; found 'equal'"):
        TemperatureDisplay.from_calibrators({}, test.logits, test.labels, strategy="equal")


def test_a_line_spans_the_rows_from_the_most_to_the_least_confident(results, task):
    line = entropy_temperatures(results, task, "hts").marks[0]
    entropy = log_normalised_entropy(LogitRows(load_task(task).test.logits))
    assert (line.x[0], line.x[-1]) == (entropy.min(), entropy.max())
    assert (np.diff(line.x) > 0).all()


def test_two_methods_are_compared_row_by_row(results, task):
    dots = two_temperatures(results, task).marks[0]
    for found, key in ((dots.x, "hts"), (dots.y, "pts")):
        unit = WorkUnit(task, 200, 0, results.seed, find_methods([key]))
        expected = fitted(task, key, unit).temperature(load_task(task).test.logits)
        np.testing.assert_allclose(found, expected)


def test_the_correlation_is_that_of_scipy_and_a_constant_has_none():
    rng = np.random.default_rng(0)
    hts = 2 + rng.random(500)
    pts = 0.5 * hts**2 + 0.1 * rng.random(500)
    said = f"correlation of ranks: {spearmanr(hts, pts)[0]:.2f}"
    assert compare_temperatures(hts, pts).caption.startswith(said)
    assert "correlation" not in compare_temperatures(np.ones(5), np.arange(1.0, 6.0)).caption


def test_outlying_rows_are_left_out_and_counted():
    values = np.linspace(2.0, 3.0, 1000)
    chart = compare_temperatures(values, np.where(np.arange(1000) < 2, 500.0, values))
    assert chart.y.limits[1] < 4
    assert chart.caption.endswith("0.2% of 1000 rows lie outside")


def test_the_default_task_is_the_papers_or_the_first(results, task, monkeypatch, tmp_path):
    assert figure_task(results) == task
    assert figure_task(results, "dogs__net").name == "dogs__net"
    monkeypatch.setattr("temperance.study.figures.papers_task", lambda results, task: "dogs" in task.name)
    assert figure_task(results).name == "dogs__net"
    with pytest.raises(InputError, match=r"task must be one of cats__large, .*; found 'cat'"):
        figure_task(results, "cat")
    ResultStore.create(tmp_path, 0)
    with pytest.raises(InputError, match="has no results yet"):
        figure_task(Results(tmp_path))


# ---- averages


def test_an_average_is_the_mean_over_tasks_of_means_over_draws_relative_to_ts(results):
    (of_bayes,) = averages(results, "nll", ["bayes", "ts"])
    assert list(of_bayes.ratio.index) == ["bayes"]
    (panel,) = averages(results, "nll")
    assert list(panel.ratio.index) == ["hts", "pts", "bayes"]
    assert list(panel.ratio) == [30, 400]
    assert (panel.title, panel.tasks) == ("all", 3)
    for n in panel.ratio:
        means = results.draws("nll", n).groupby(level=["task", "method"]).mean().unstack("method")
        for method in panel.ratio.index:
            assert panel.ratio.at[method, n] == pytest.approx((means[method] / means["ts"]).mean())
            assert panel.error.at[method, n] == pytest.approx(sem(means[method] / means["ts"]))


def test_a_data_set_with_three_tasks_has_a_panel_of_its_own(results, monkeypatch):
    monkeypatch.setattr(study_results, "MIN_TASKS", 2)
    panels = averages(results, "ece")
    assert [panel.tasks for panel in panels] == [2, 1]
    single = next(task.dataset for task in results.tasks if task.dataset != "cats")
    assert [panel.title for panel in panels] == ["cats", single]


def test_a_data_set_that_is_alone_has_its_own_name(made):
    scores = {"ts": 1.0, "hts": 0.9}
    names = [f"CIFAR-10__{i}" for i in range(3)]

    def titles(*more):
        return [panel.title for panel in averages(made(dict.fromkeys([*names, *more], scores)), "nll")]

    assert titles("CIFAR-100__a", "CIFAR-100__b") == ["CIFAR-10", "CIFAR-100"]


def test_a_method_without_a_result_on_a_task_has_no_mean(results):
    scores, lost = results.scores, results.tasks[0].name
    is_lost = (scores["task"] == lost) & (scores["n"] == 30) & (scores["method"] == "hts")
    results.scores = scores[~is_lost]
    (panel,) = averages(results, "nll")
    np.testing.assert_array_equal(panel.ratio.isna(), [[True, False], [False, False], [False, False]])


def test_without_ts_or_without_another_there_is_no_average(results):
    every = results.scores
    for methods in (["ts"], ["hts", "pts"], []):
        fewer = Results(results.folder)
        fewer.scores = every[every["method"].isin(methods)]
        found = methods[0] if methods else "none"
        with pytest.raises(InputError, match=f"ts and of another method; found results of {found}"):
            averages(fewer, "nll")


def test_larger_markers_are_more_rows_and_an_infinite_loss_is_written_as_such(results):
    ax = draw_figure(results, "avg_NLL").axes[0]
    found = [dots.get_sizes() for dots in ax.collections if isinstance(dots, PathCollection)]
    assert len(found) == 3
    assert all(few < many for few, many in found)
    at = results.scores.query("method == 'pts' and n == 30").index[0]
    results.scores.loc[at, "nll"] = np.inf
    assert words(draw_figure(results, "avg_NLL")) == ["∞"]


@pytest.mark.parametrize("far", [7.0, 300.0])
def test_a_method_far_worse_than_the_others_does_not_flatten_them(far, made):
    scores = {"ts": 1.0, "hts": 1.03, "pts": 0.97, "bts": far}
    ax = draw_figure(made({"a__x": scores, "a__y": scores}), "avg_NLL").axes[0]
    low, high = ax.get_ylim()
    assert low < -3
    assert 100 * (far - 1) < high
    places = ax.transAxes.inverted().transform(ax.transData.transform([(0, -3), (0, 3)]))[:, 1]
    assert places[1] - places[0] > 0.15


# ---- files


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_cut_off_and_the_caption_describes_the_figure(name, results):
    with style.context(["default", figures._STYLE]):
        figure = draw_figure(results, name)
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= width
    assert box.y1 <= height
    ax = figure.axes[0]
    assert ax.get_ylabel() or name.startswith("cd_")
    whole = "mean rank by" if name.startswith("cd_") else "all (3 tasks)"
    assert ax.get_title().startswith("cats, large" if name in ON_A_TASK else whole)
    if name.startswith("cd_"):
        assert "Bayes" in "".join(text.get_text() for text in ax.texts)
    elif name == "PTSvHTS":
        assert "of ranks" in figure.get_supxlabel()
    else:
        assert len(figure.legends[0].get_texts()) >= 2


@pytest.mark.parametrize("own", ["a_method_of_mine", "my_package:TheVeryLongNameOfMyOwnCalibrator"])
@pytest.mark.parametrize("name", ["avg_NLL", "cd_NLL"])
def test_the_name_of_an_own_method_is_not_cut_off(name, own, made):
    scores = {"none": 1.2, "ts": 1.0, "hts": 0.9, own: 0.8}
    tasks = [f"data{i}__model" for i in range(6)]
    with style.context(["default", figures._STYLE]):
        figure = draw_figure(made(dict.fromkeys(tasks, scores)), name)
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0) >= 0
    assert (box.x1 <= width, box.y1 <= height) == (True, True)
    ax = figure.axes[0]
    shown = " ".join(text.get_text() for text in (*ax.texts, *ax.get_xticklabels()))
    assert shorten(method_style(own).label, figures.MAX_LABEL) in shown
    assert ax.get_position().height * height > 1.0


@pytest.mark.parametrize("name", ["h_PTS", "avg_ECE"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_study_gives_the_same_bytes_whatever_the_settings(name, suffix, results, tmp_path):
    first = save_figure(results, name, tmp_path / f"first{suffix}")
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.hashsalt": None}):
        before = dict(mpl.rcParams)
        second = save_figure(results, name, tmp_path / f"second{suffix.upper()}")
        assert dict(mpl.rcParams) == before
    assert first.read_bytes().startswith(BEGINNINGS[suffix])
    assert first.read_bytes() == second.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_dots_are_one_image_inside_drawings_and_the_study_is_not_changed(results, study_folder, tmp_path):
    before = (study_folder / FILE_NAME).read_bytes()
    text = save_figure(results, "PTSvHTS", tmp_path / "dots.svg").read_text()
    assert (study_folder / FILE_NAME).read_bytes() == before
    assert text.count("<image") == 1
    assert text.count("<use") < 200  # of letters and ticks, not of rows


def test_a_file_that_exists_or_cannot_be_written_is_refused_before_the_work(results, tmp_path, monkeypatch):
    monkeypatch.setattr("temperance.study.figures.draw_figure", lambda *a, **o: pytest.fail("worked"))
    (tmp_path / "old.png").write_text("old")
    with pytest.raises(FileExistsError, match="already exists"):
        save_figure(results, "avg_NLL", tmp_path / "old.png")
    with pytest.raises(InputError, match=r"must end in \.png, \.svg, \.pdf; found '\.jpg'"):
        save_figure(results, "avg_NLL", tmp_path / "new.jpg")
    assert (tmp_path / "old.png").read_text() == "old"


def test_overwriting_replaces_and_a_failure_leaves_the_old_file(results, tmp_path, monkeypatch):
    path = tmp_path / "old.png"
    path.write_text("old")
    with pytest.raises(InputError, match="the figure must be one of 'class_LTS'"):
        save_figure(results, "avg_XYZ", path, overwrite=True)
    with monkeypatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda *a, **o: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            save_figure(results, "avg_NLL", path, overwrite=True)
    assert path.read_text() == "old"
    save_figure(results, "avg_NLL", path, overwrite=True)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["old.png"]


def test_no_window_and_no_pyplot(study_folder, tmp_path):
    code = (
        "import sys\n"
        "from temperance.study import Results\n"
        "from temperance.study.figures import save_figure\n"
        "assert 'matplotlib' not in sys.modules\n"
        f"save_figure(Results({str(study_folder)!r}), 'avg_NLL', {str(tmp_path / 'a.pdf')!r})\n"
        "assert 'matplotlib' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_classes_without_enough_rows_are_refused(results, tmp_path):
    write_task(tmp_path, "many__classes", n_rows=30, n_classes=20)
    (few,) = find_tasks([tmp_path])
    with pytest.raises(InputError, match=r"no class of many__classes has 10 test rows"):
        class_temperatures(results, few)


def test_a_long_name_is_cut_and_one_that_the_font_lacks_is_no_warning(results, tmp_path):
    (task,) = results.tasks[:1]
    results.tasks = [replace(task, name="日本" + "x" * 100)]
    path = save_figure(results, "h_HTS", tmp_path / "a.png", task=results.tasks[0].name)
    assert path.exists()
    title = draw_figure(results, "h_HTS", task=results.tasks[0].name).axes[0].get_title()
    assert len(title) < 60
    assert "…" in title


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


# ---- error bars


def test_bars_are_drawn_and_named_in_the_legend_but_one_task_has_none(results, task):
    figure = draw_figure(results, "avg_NLL")
    assert len([bars for bars in figure.axes[0].containers if bars.has_yerr]) == 3
    assert "± standard error over tasks" in figure.legends[0].get_title().get_text()
    results.tasks = [task]
    (panel,) = averages(results, "nll")
    assert panel.error.isna().all(axis=None)


# ---- critical differences


def test_the_diagram_has_every_method_with_its_mean_rank(results):
    ranks = rank_methods(results, "nll", 30)
    said = [word.strip() for word in words(draw_figure(results, "cd_NLL"))]
    for method, mean in ranks.mean.items():
        label = method_style(method).label
        assert f"{label}  {mean:.2f}" in said or f"{mean:.2f}  {label}" in said


def test_groups_are_bars_and_the_critical_difference_has_its_length(results, monkeypatch):
    ranks = replace(
        rank_methods(results, "nll", 30), critical_difference=1.5, p_value=0.01,
        groups=(("ts", "bayes"), ("hts",)),
        mean=pd.Series({"ts": 1.0, "bayes": 2.0, "hts": 3.0, "pts": 4.0, "none": 5.0}),
    )  # fmt: skip
    monkeypatch.setattr("temperance.study.figures.rank_methods", lambda *a, **o: ranks)
    figure = draw_figure(results, "cd_NLL")
    lines = [line for line in figure.axes[0].lines if line.get_linewidth() == 2.2]
    assert [list(line.get_xdata()) for line in lines] == [[1.0, 2.0]]
    assert "critical difference 1.50" in words(figure)
    assert any(list(line.get_xdata()) == [1, 2.5] for line in figure.axes[0].lines)


def test_without_a_difference_the_title_says_so_and_there_is_no_scale_of_it(results):
    figure = draw_figure(results, "cd_NLL", methods=["ts"])
    ranks = rank_methods(results, methods=["ts"])
    assert ranks.p_value > 0.05
    assert figure.axes[0].get_title().endswith("no difference")
    assert not any("critical" in said for said in words(figure))


def test_choices_of_other_figures_are_refused(results, tmp_path):
    with pytest.raises(InputError, match="n is for the figures cd_ECE, cd_NLL; found avg_NLL"):
        save_figure(results, "avg_NLL", tmp_path / "a.png", n=30)
    with pytest.raises(InputError, match="over is for the figures cd_ECE, cd_NLL; found h_HTS"):
        draw_figure(results, "h_HTS", over="tasks")
    assert ", 2 data sets (" in draw_figure(results, "cd_NLL", over="datasets").axes[0].get_title()


# ---- axes of temperatures


@pytest.mark.parametrize("method", ["hts", "pts"])
def test_a_bad_draw_does_not_stretch_the_axes_and_is_counted(method, results, task, monkeypatch):
    limits = entropy_temperatures(results, task, method).y.limits
    real, drawn = task_figures.temperatures, []

    def first_is_bad(*given):
        found = real(*given)
        drawn.append(np.where(np.arange(len(found)) < len(found) // 2, 1e4, found) if not drawn else found)
        return drawn[-1]

    monkeypatch.setattr(task_figures, "temperatures", first_is_bad)
    chart = entropy_temperatures(results, task, method)
    assert chart.y.limits == limits
    few = np.array(drawn[:-2])
    beyond = (few < limits[0]) | (few > limits[1])
    lines, share = beyond.any(axis=1).sum(), f"{100 * beyond.mean():.1f}%"
    words = f"({lines} of 10 leave the axes)" if method == "hts" else f"({share} outside the axes)"
    assert words in chart.marks[0].label
