"""A record of a fit with damaged numbers is refused, or `check` ends quickly with finite numbers."""

import json
import math
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temperance import InputError, TemperatureScaling, load, monitoring
from temperance.calibrator_file import ADAPTATION, BASELINE
from temperance.data import simulate

TASK = simulate(n_rows=600, n_classes=3, random_state=0)
CAL = TemperatureScaling().fit(TASK.logits[:400], TASK.labels[:400])
ODD = [0, 1e-300, 0.5, 1, 7, 400, 401, 10**7, 2**53, 9.3e18, 1e300, 1e308, -1, -1e308]
PLACES = [
    *(("baseline", field.name) for field in BASELINE),
    *(("adaptation", field.name) for field in ADAPTATION),
    ("fit", "rows"),
    ("fit", "class_counts"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "cal.json"


def content(path):
    CAL.adapt(TASK.logits[400:]).save(path, overwrite=True)
    return json.loads(path.read_text())


def numbers_in(value):
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, (int, float)) else []


def assert_refused_or_checked(path, damaged):
    path.write_text(json.dumps(damaged))
    began = time.monotonic()
    try:
        calibrator = load(path)
    except InputError:
        return False
    for labels in (None, TASK.labels[400:]):
        found = monitoring.check(calibrator, TASK.logits[400:], labels)
        limits = np.concatenate([found.limits.low, found.limits.high])
        assert np.isfinite(limits).all()
        assert all(map(math.isfinite, numbers_in(found.shift and vars(found.shift))))
        assert found.sentences
    assert time.monotonic() - began < 5
    return True


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_refused_or_harmless(path, data):
    damaged = content(path)
    if not data.draw(st.booleans(), label="adapted"):
        del damaged["adaptation"]
    for place, name in data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3), label="fields"):
        if place not in damaged or name not in damaged[place]:
            continue
        number = data.draw(st.sampled_from(ODD), label=name)
        held = damaged[place][name]
        if not isinstance(held, list):
            damaged[place][name] = number
        elif data.draw(st.booleans(), label="all of them"):
            damaged[place][name] = [number] * len(held)
        else:
            held[data.draw(st.integers(0, len(held) - 1), label="which")] = number
    assert_refused_or_checked(path, damaged)


@pytest.mark.parametrize("number", [9.3e18, 2**53, 0, 1e308, 1e-300])
@pytest.mark.parametrize("also", [(), ("rows",)])
def test_an_impossible_number_of_rows_is_refused(path, number, also):
    damaged = content(path)
    damaged["baseline"] |= {"effective_rows": number} | dict.fromkeys(also, number)
    damaged["fit"]["rows"] = 2**53
    assert not assert_refused_or_checked(path, damaged)
