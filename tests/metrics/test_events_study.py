"""The simulations of how calibration is judged: their worlds, some of their cells, their page."""

import numpy as np
import pytest

from temperance.metrics.finding import Finding, State

NAMES = ("acting", "judging", "tables", "worlds")


@pytest.fixture(scope="module")
def scripts(benchmark_script):
    found = {name: benchmark_script(f"events_{name}") for name in NAMES}
    return {"events": benchmark_script("events"), **found}


def only(table, **wanted):
    """Return the row whose first cells are these."""
    (row,) = [
        row
        for row in table.rows
        if dict(zip(table.head, map(str, row), strict=True)).items() >= wanted.items()
    ]
    return dict(zip(table.head, row, strict=True))


def percentage(cell):
    return float(cell.split()[0])


def test_worlds_state_other_probabilities_than_the_true_ones_by_which_labels_are_drawn(scripts):
    draw, rng = scripts["worlds"].draw, np.random.default_rng(0)
    for kind in scripts["worlds"].TWO:
        world = draw(kind, "calibrated", 4000, rng)
        np.testing.assert_array_equal(world.stated, world.truth)
        error = np.sqrt(np.sum(world.truth[:, 1] * world.truth[:, 0]))
        assert abs(world.labels.sum() - world.truth[:, 1].sum()) < 4 * error + 1
    assert 0.01 < draw("2%", "calibrated", 20_000, rng).labels.mean() < 0.03
    higher = draw("balanced", "log-odds +0.4", 4000, rng)
    odds = [np.log(p[:, 1] / p[:, 0]) for p in (higher.truth, higher.stated)]
    np.testing.assert_allclose(odds[0] - odds[1], 0.4, rtol=1e-9)
    accurate = draw(10, "99.5% accurate", 4000, rng)
    assert 0.99 < np.mean(accurate.stated.argmax(axis=1) == accurate.labels) < 1


def test_labels_of_a_group_are_alike_and_have_the_stated_frequencies(scripts):
    rng, groups = np.random.default_rng(1), np.arange(40_000) // 20
    probs = np.tile([0.5, 0.3, 0.2], (40_000, 1))
    labels = scripts["worlds"].draw_labels(probs, rng, groups)
    np.testing.assert_allclose(np.bincount(labels) / 40_000, probs[0], atol=0.02)
    first = (labels == 0).reshape(-1, 20)
    variance = 20 * first.mean(axis=1).var() / first.var()
    assert variance > 3  # 1 if rows are independent


@pytest.mark.parametrize("kind", ["balanced", "2%", 3])
def test_calibrated_rows_are_rejected_about_as_often_as_the_level(scripts, monkeypatch, kind):
    study = scripts["judging"]
    monkeypatch.setattr(study, "LEVELS", {(kind, "calibrated", 200): (None, 5)})
    (table,) = study.test_part(400, 0)
    assert 1.0 <= percentage(only(table)["one test"]) <= 8.5


def test_what_is_wrong_is_seen_and_named_with_its_direction(scripts, monkeypatch):
    study = scripts["judging"]
    cells = [("balanced", wrong, 500) for wrong in ("log-odds +0.4", "logits x 1.5")]
    monkeypatch.setattr(study, "SENTENCES_OF_TWO", cells)
    (table,) = study.sentence_part(60, 0)
    level, spread = only(table, **{"": cells[0][1]}), only(table, **{"": cells[1][1]})
    assert percentage(level["level"]) > 65
    assert percentage(spread["spread"]) > 75
    assert level["wrong direction"] == spread["wrong direction"] == 0
    monkeypatch.setattr(study, "SENTENCES_OF_SEVERAL", [(3, "one class +0.7", 500), (3, "logits x 1.5", 500)])
    (table,) = study.sentence3_part(60, 0)
    one_class, extreme = only(table, **{"": "one class +0.7"}), only(table, **{"": "logits x 1.5"})
    assert percentage(one_class["class"]) + percentage(one_class["gap and class"]) > 70
    assert percentage(extreme["gap"]) > 70
    assert one_class["wrong direction"] == extreme["wrong direction"] == 0


def test_a_direction_that_is_not_the_truths_is_counted(scripts):
    study, world = (
        scripts["judging"],
        scripts["worlds"].draw("balanced", "log-odds +0.4", 2000, np.random.default_rng(2)),
    )
    finding = Finding.of(world.rows())
    assert finding.state is State.LEVEL
    assert not study.is_false(finding, world, "log-odds +0.4")
    other = scripts["worlds"].World(world.stated, 2 * world.stated - world.truth, world.labels)
    assert study.is_false(finding, other, "log-odds +0.4")


def test_swapped_columns_are_reversed_and_calibrated_ones_are_not(scripts, monkeypatch):
    study = scripts["judging"]
    monkeypatch.setattr(
        study, "MIXED_UP", [("balanced", "swapped columns", 200), ("balanced", "calibrated", 200)]
    )
    (table,) = study.reversed_part(40, 0)
    assert percentage(only(table, **{"": "swapped columns"})["reversed"]) == 100
    assert percentage(only(table, **{"": "calibrated"})["reversed"]) == 0


def test_every_part_about_judging_runs_and_fills_a_block_of_the_page(scripts):
    page = scripts["tables"].PAGE.read_text(encoding="utf-8")
    blocks = {found["name"] for found in scripts["tables"].BLOCK.finditer(page)}
    names = set()
    for part, _ in scripts["events"].JUDGING.values():
        for table in part(1, 0):
            assert {len(row) for row in table.rows} == {len(table.head)}
            names.add(table.name)
    assert names - {"examples"} == blocks - {"recommend", "automate"}


def test_every_part_about_acting_runs(scripts, monkeypatch):
    acting = scripts["acting"]
    x = np.random.default_rng(3).normal(-1, 2, 16_000)
    labels = (np.random.default_rng(4).random(16_000) < 1 / (1 + np.exp(-x))).astype(int)
    monkeypatch.setattr(acting, "made_tables", lambda seeds: [("10%", x, labels)])
    tables = {}
    for name, (part, _) in scripts["events"].ACTING.items():
        if name != "multi":  # needs the public tasks
            tables |= {table.name: table for table in part(2, 0)}
    for table in tables.values():
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.head)}


def test_a_share_has_the_error_of_its_simulation(scripts):
    share = scripts["tables"].share
    assert share([True] * 50 + [False] * 50) == "50.0 \u00b1 5.0"
    assert share([False] * 99) == "0.0 \u00b1 0.7"


def test_tables_replace_their_own_blocks_of_the_page(scripts, tmp_path, monkeypatch):
    tables = scripts["tables"]
    page = tmp_path / "page.md"
    blocks = [
        f"<!-- generated: {name} -->\n\n{text}\n\n<!-- end -->\n"
        for name, text in (("one", "old"), ("two", "kept"))
    ]
    page.write_text("".join(blocks))
    monkeypatch.setattr(tables, "PAGE", page)
    table = tables.Table("one", ("x", "y"), [(1, "2.0 \u00b1 0.1")], "5 samples.")
    tables.write([table, tables.Table("elsewhere", ("x",), [(1,)], "")])
    assert "old" not in page.read_text()
    assert "5 samples.\n\n| x | y |\n| --- | --- |\n| 1 | 2.0 \u00b1 0.1 |" in page.read_text()
    assert "kept" in page.read_text()
