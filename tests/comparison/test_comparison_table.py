"""The table of methods: sorted by log loss, the same numbers in text, Markdown, LaTeX and a data frame."""

import pytest

from temperance import compare
from temperance.comparison.method_result import Difference
from temperance.data import simulate


@pytest.fixture(scope="module")
def compared():
    task = simulate(400, 3, random_state=2)
    methods = {"ts": "ts", "h_t|s": "hts", "bts": "bts"}
    return compare(task.logits, task.labels, methods=methods, metrics={"mine": lambda p, y: 0.25}, draws=2)


def test_a_frame_has_the_numbers_lowest_log_loss_first(compared):
    frame = compared.to_frame()
    assert list(frame.columns) == ["nll", "difference", "error", "ece", "accuracy", "changed_share", "mine"]
    assert sorted(frame.index) == sorted(compared.results)
    assert frame["nll"].is_monotonic_increasing
    best = compared.results[frame.index[0]]
    for name, row in frame.iterrows():
        wanted = Difference.of_nll(compared.results[name], best)
        assert (row["difference"], row["error"]) == (wanted.value, wanted.error)
        assert row["ece"] == compared.results[name].scores["ece"].value
    assert frame["difference"].iloc[0] == 0


def test_every_text_has_the_rows_of_the_frame(compared):
    frame, recommended = compared.to_frame(), compared.recommended
    printed = [line.split() for line in str(compared).splitlines()]
    start = next(i for i, words in enumerate(printed) if words[:1] == ["method"])
    names = [words[0] for words in printed[start + 1 : start + 1 + len(frame)]]
    assert names == list(frame.index)
    markdown, latex = compared.to_markdown().splitlines(), compared.to_latex().splitlines()
    assert len({len(line) for line in markdown}) == 1, "columns are aligned"
    assert latex[0] == r"\begin{tabular}{lrrrrr}"
    for name, in_markdown, in_latex in zip(frame.index, markdown[2:], latex[4:], strict=False):
        for shown in (in_markdown, in_latex):
            assert f"{frame['nll'][name]:.4f}" in shown
            assert ("textbf" in shown or "**" in shown) == (name == recommended)
    assert any(line.startswith(r"| h_t\|s") for line in markdown)
    assert any(line.startswith(r"h\_t$|$s") for line in latex)
