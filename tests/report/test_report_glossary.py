"""The glossary: every method on the page has an entry, and variants of one class differ."""

import re

import pytest

from temperance import compare
from temperance.data import simulate
from temperance.report.page import render_report


@pytest.fixture(scope="module")
def entries():
    task = simulate(200, 3, random_state=0)
    page = render_report(compare(task.logits, task.labels, methods="all", folds=2, draws=5))
    found = re.search("<dl>.*?</dl>", page, re.DOTALL).group(0)
    return dict(re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", found, re.DOTALL)), page


def test_every_method_on_the_page_has_an_entry_of_its_own(entries):
    words, page = entries
    methods = re.findall(r'<tr><th scope="row">([\w-]+)</th><td>[0-9.]+<small>', page)
    assert len(methods) == 12
    assert len({words[key] for key in methods}) == len(methods)


def test_a_variant_is_its_class_and_what_differs(entries):
    words, _ = entries
    assert words["pts-ece"] == f"{words['pts']}, fitted to the ECE, not to the log loss"
    bias = "and with one bias per class, which can change predictions"
    assert words["bayes-bias"] == f"{words['bayes']}, {bias}"
