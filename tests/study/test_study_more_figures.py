"""Error bars of averages, the critical difference diagram, reliability diagrams, and axes of temperatures."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem

from temperance import InputError, make_calibrator
from temperance.calibrators import method_style
from temperance.metrics import ece
from temperance.study import rank_methods, summary_figures
from temperance.study.figures import draw_figure, save_figure
from temperance.study.protocol import WorkUnit
from temperance.study.summary_figures import averages
from temperance.study.task_figures import entropy_temperatures, reliability_display
from temperance.study.tasks import load_task


@pytest.fixture
def task(results):
    return results.tasks[0]


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


# ---- error bars


def test_bars_are_standard_errors_over_tasks(results):
    (panel,) = averages(results, "nll").panels
    for i, method in enumerate(("hts", "pts", "bayes")):
        for j, n in enumerate(results.sizes):
            assert panel.error[i, j] == pytest.approx(sem(results.ratios("nll", n)[method]))
    figure = draw_figure(results, "avg_NLL")
    drawn = [bars for bars in figure.axes[0].containers if bars.has_yerr]
    assert len(drawn) == 3
    assert "± standard error over tasks" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_one_task_has_no_bars(results, task):
    results.tasks = [task]
    data = averages(results, "nll")
    assert np.isnan(data.panels[0].error).all()
    legend = draw_figure(results, "avg_NLL").legends[0]
    assert not any("standard error" in text.get_text() for text in legend.get_texts())


def test_a_task_without_a_ratio_is_left_out_of_standard_errors(results, task):
    results.scores = results.scores.query("not (task == @task.name and n == 30 and method == 'hts')")
    (panel,) = averages(results, "nll").panels
    assert panel.error[0, 0] == pytest.approx(sem(results.ratios("nll", 30)["hts"].dropna()))


def test_the_scale_contains_the_error_bars():
    scale = summary_figures._Scale.of(np.array([0.98, 0.99, 1.0, 1.01]), np.array([0.05, 0.0, 0.0, 0.04]))
    assert scale.low < 0.93
    assert scale.high > 1.05


def test_averages_of_chosen_methods(results):
    assert averages(results, "nll", ["bayes", "ts"]).methods == ("bayes",)
    with pytest.raises(InputError, match="ts and of another method; found results of ts"):
        averages(results, "nll", ["ts"])


# ---- critical differences


def test_the_diagram_has_every_method_with_its_mean_rank(results):
    ranks = rank_methods(results, "nll", 30)
    said = words(draw_figure(results, "cd_NLL"))
    for method, mean in zip(ranks.methods, ranks.mean, strict=True):
        label = method_style(method).label
        assert f"{label}  {mean:.2f}" in said or f"{mean:.2f}  {label}" in said


def test_groups_are_bars_and_the_critical_difference_has_its_length(results, monkeypatch):
    ranks = replace(
        rank_methods(results, "nll", 30), critical_difference=1.5, p_value=0.01,
        groups=(("ts", "bayes"), ("hts",)), mean=np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        methods=("ts", "bayes", "hts", "pts", "none"),
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
    with pytest.raises(InputError, match="n is for the figures cd_ECE, cd_NLL, reliability; found avg_NLL"):
        save_figure(results, "avg_NLL", tmp_path / "a.png", n=30)
    with pytest.raises(InputError, match="over is for the figures cd_ECE, cd_NLL; found reliability"):
        draw_figure(results, "reliability", over="tasks")
    assert "over 2 data sets" not in draw_figure(results, "cd_NLL", over="datasets").axes[0].get_title()
    assert ", 2 data sets (" in draw_figure(results, "cd_NLL", over="datasets").axes[0].get_title()


# ---- reliability


@pytest.mark.parametrize("n", [None, 30])
def test_reliability_is_that_of_the_fit_of_the_study(results, task, n):
    display = reliability_display(results, task, ["hts"], n)
    assert list(display.diagrams) == ["none", "hts"]
    data = load_task(task)
    unit = WorkUnit(task, n or task.rows, 0, results.seed, ("hts",))
    rows = data.val.take(unit.rows())
    probs = make_calibrator("hts").fit(rows.logits, rows.labels).predict_proba(data.test.logits)
    found = display.diagrams["hts"]
    error = float(found.share @ np.abs(found.gap))
    assert error == pytest.approx(ece(probs, data.test.labels, bins=15))
    if n is not None:  # the same fit is in the store
        assert error == pytest.approx(results.draws("ece15", 30)[task.name, "hts", 0])
    legend = draw_figure(results, "reliability", task=task.name, methods=["hts"], n=n).legends[0]
    assert f"HTS: ECE {100 * error:.2f} %" in [text.get_text() for text in legend.get_texts()]


def test_before_and_after_by_default(results, task):
    assert list(reliability_display(results, task).diagrams) == ["none", "ts", "bayes"]


# ---- axes of temperatures


def test_a_bad_draw_does_not_stretch_the_axes_and_is_counted(results, task):
    data = entropy_temperatures(results, task, "hts")
    worse = data.by_few.copy()
    worse[0] = 1e4
    stretched = replace(data, by_few=worse)
    core = np.log([data.by_all.min(), data.by_all.max(), data.ts])
    assert np.log(stretched.limits[1]) < core.max() + 3 * (np.ptp(core) + 0.5)
    legend = [mark.label for mark in stretched.chart().marks]
    low, high = stretched.limits
    out = ((worse < low) | (worse > high)).any(axis=1).sum()
    assert out >= 1
    assert f"({out} of 10 leave the axes)" in legend[0]
    assert stretched.chart().y.limits == stretched.limits


def test_dots_outside_are_a_share(results, task):
    data = entropy_temperatures(results, task, "pts")
    worse = data.by_few.copy()
    worse[0, :2] = 1e4
    labels = [mark.label for mark in replace(data, by_few=worse).chart().marks]
    low, high = replace(data, by_few=worse).limits
    share = np.mean((worse < low) | (worse > high))
    assert f"({100 * share:.1f} % outside the axes)" in labels[0]


def test_the_best_temperature_of_few_rows_is_an_arrow_if_it_is_far(results, task):
    data = entropy_temperatures(results, task, "hts")
    best = data.best
    far = replace(
        best,
        centre=np.append(best.centre, 0.0),
        count=np.append(best.count, 1),
        optimum=np.append(best.optimum, 4e3),
        low=np.append(best.low, 3e3),
        high=np.append(best.high, 5e3),
    )
    chart = replace(data, best=far).chart()
    assert chart.y.limits[1] < 1e3
    assert [mark.words.strip() for mark in chart.marks if hasattr(mark, "words")] == ["↑ 4e+03"]
