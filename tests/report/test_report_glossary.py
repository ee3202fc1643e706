"""The glossary: every method of a comparison has an entry, and variants of one class differ."""

import re

from temperance import CALIBRATORS
from temperance.report.sections import SECTIONS

_, GLOSSARY = SECTIONS["glossary"](None)
ENTRIES = dict(re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", str(GLOSSARY), re.DOTALL))


def test_every_method_of_a_comparison_has_an_entry_of_its_own():
    keys = [key for key, method in CALIBRATORS.items() if method.in_comparison]
    assert set(keys) <= set(ENTRIES)
    assert len({ENTRIES[key] for key in keys}) == len(keys)


def test_a_variant_is_its_class_and_what_differs():
    assert ENTRIES["pts-ece"] == f"{ENTRIES['pts']}, fitted to the ECE, not to the NLL"
    bias = "and with a bias for each class, which may change predictions"
    assert ENTRIES["bayes-bias"] == f"{ENTRIES['bayes']}, {bias}"
