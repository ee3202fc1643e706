"""scikit-learn's own checks: all of them for the classifier, those that suit logits for the calibrators."""

import pytest
from compared import CLASS_KEEPING
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from temperance import CalibratedClassifier, make_calibrator

# The checks fit a few rows of noise.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:All \\d+ rows are classified:UserWarning"),
    pytest.mark.filterwarnings("ignore:The labels agree with the logits no better:UserWarning"),
]

COLUMNS = "labels are whole numbers, the columns of the logits: not 2 where X has two columns, and not 1.0"
NAMES = "the arguments of fit are called logits and labels"
WORDS = "refused, as it must be, but in words of logits and classes rather than of features"
OBJECTS = "logits are numbers; an array of objects is refused, not converted"
NO_FIT_TRANSFORM = "a fit must not be evaluated on its own rows: there is no fit_transform"

# Each of these checks must fail; one that passes must be removed from the list.
EXPECTED = {
    "check_estimators_overwrite_params": COLUMNS,
    "check_estimators_fit_returns_self": COLUMNS,
    "check_readonly_memmap_input": COLUMNS,
    "check_sample_weights_pandas_series": COLUMNS,
    "check_sample_weights_not_an_array": COLUMNS,
    "check_sample_weights_shape": COLUMNS,
    "check_sample_weights_not_overwritten": COLUMNS,
    "check_fit_score_takes_y": NAMES,
    "check_sample_weight_equivalence_on_dense_data": NAMES,
    "check_n_features_in_after_fitting": WORDS,
    "check_complex_data": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_fit2d_1feature": WORDS,
    "check_fit2d_predict1d": WORDS,
    "check_requires_y_none": WORDS,
    "check_dtype_object": OBJECTS,
    "check_transformer_data_not_an_array": NO_FIT_TRANSFORM,
    "check_transformer_general": NO_FIT_TRANSFORM,
    "check_transformer_preserve_dtypes": NO_FIT_TRANSFORM,
}


@parametrize_with_checks(
    [
        CalibratedClassifier(LogisticRegression(), cv=2),
        CalibratedClassifier(GaussianNB(), "ts", cv=2),
    ]
)
def test_the_classifier_passes_every_check(estimator, check):
    check(estimator)


# Left out are methods that use the code of "hts" and "pts" with another formula.
@parametrize_with_checks(
    [make_calibrator(key) for key in CLASS_KEEPING if key not in ("lts", "hnlts", "pts-ece")]
)
def test_a_calibrator_passes_the_checks_that_suit_logits(estimator, check):
    if check.func.__name__ in EXPECTED:
        with pytest.raises((AssertionError, AttributeError, TypeError, ValueError)):
            check(estimator)
    else:
        check(estimator)


def test_every_check_that_is_expected_to_fail_is_one_of_scikit_learns():
    names = {check.func.__name__ for _, check in estimator_checks_generator(make_calibrator("ts"))}
    assert set(EXPECTED) <= names
