"""The table of methods: everything the package knows about them.

A method is a calibrator class with some of its options fixed, its formula, a label, and a style for figures.
`make_calibrator`, `compare`, the study, the command line, the displays and readers of calibrator files all
read this table. A new method is a file in this folder, one of the same name in `formulas`, and an entry here.
Classes are imported on first use: a service that loads a file imports its formula alone, and no estimator.

The colours were chosen by a search: far apart (CIELAB) to normal eyes, and where possible to three kinds of
colour blindness (Machado et al., 2009), among those with a contrast of 3:1 or more both to white paper and
to the report's dark ground #1b1f24. That leaves a narrow range of lightness. With this many methods, some
pairs look alike to colour-blind eyes, and all do on grey paper. So each method has its own marker, and
variants have dashes. There are more methods than plain shapes: those that only a study draws have letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zlib import crc32

from temperance.errors import InputError, excerpt, guess
from temperance.loaders import load_object

if TYPE_CHECKING:
    from temperance.calibrators.estimator import Calibrator
    from temperance.formulas.model import Formula

UNCALIBRATED = "none"
"""The name under which the classifier's own softmax is compared."""


@dataclass(frozen=True)
class MethodStyle:
    """How a method is named and drawn.

    Attributes
    ----------
    label : str
        Its name in tables and figures.
    colour : str
        As #rrggbb.
    marker : str
        One of matplotlib's letters.
    dash : str
        As matplotlib writes it.

    Examples
    --------
    >>> from temperance.calibrators import method_style
    >>> method_style("hts").label
    'HTS'
    """

    label: str
    colour: str
    marker: str
    dash: str = "-"


@dataclass(frozen=True)
class Method:
    """A method: how to build its calibrator, and its properties. Call it to build one.

    Attributes
    ----------
    key : str
        Its name in the registry, on the command line and in results.
    estimator : callable or str
        What builds the calibrator, usually its class; for a method of this package, its place in
        `calibrators`, such as "ts:TemperatureScaling".
    style : MethodStyle
        Its label, colour and marker.
    options : mapping
        Options of the class that the key fixes.
    in_comparison, in_study : bool
        Whether `compare` uses it with methods="all", and the study where no methods are named.
    formula_class : class or str
        The formula of a method that can be saved, or its place in `formulas`.

    Examples
    --------
    >>> from temperance import CALIBRATORS
    >>> method = CALIBRATORS["pts-ece"]
    >>> method(top_k=5)
    ParametrizedTemperatureScaling(loss='ece', top_k=5)
    >>> method.keeps_class, method.is_random
    (True, True)
    """

    key: str
    estimator: Callable[..., Any] | str
    style: MethodStyle
    options: Mapping[str, Any] = field(default_factory=dict)
    in_comparison: bool = False
    in_study: bool = False
    formula_class: type[Formula] | str = ""

    @cached_property
    def build(self) -> Callable[..., Any]:
        """What builds the calibrator."""
        return _found("calibrators", self.estimator)

    @property
    def class_name(self) -> str:
        """The name of its class, for messages: known without importing it."""
        return (
            self.estimator.partition(":")[2] if isinstance(self.estimator, str) else self.estimator.__name__
        )

    @cached_property
    def formula(self) -> type[Formula]:
        """The class of its formula."""
        return _found("formulas", self.formula_class)

    def __call__(self, **options: Any) -> Any:
        """Build an unfitted calibrator; the options given here override the key's."""
        return self.build(**{**self.options, **options})

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (self.build.__doc__ or "").partition("\n")[0].rstrip(".")

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class always stays the same."""
        return bool(getattr(self(), "keeps_class", False))

    @property
    def supports_masked_classes(self) -> bool:
        """Whether -inf can mark an impossible class."""
        return bool(getattr(self(), "supports_masked_classes", False))

    @property
    def is_ours(self) -> bool:
        """Whether the method is part of this package, so that its errors must not be hidden."""
        return isinstance(self(), load_object("temperance.calibrators.estimator:Calibrator"))

    @property
    def is_random(self) -> bool:
        """Whether two fits to the same rows can differ by their random seed."""
        return hasattr(self(), "random_state")

    def seeded(self, random_state: int) -> Any:
        """Build an unfitted calibrator with a random seed, if it takes one."""
        return self(random_state=random_state) if self.is_random else self()


def _found(package: str, place: Any) -> Any:
    return load_object(f"temperance.{package}.{place}") if isinstance(place, str) else place


# The estimator and the formula of each class of methods. LTS and HTS are HnLTS without one of its two terms:
# they share a file.
_TS = "ts:TemperatureScaling", "ts:SingleTemperatureFormula"
_LTS = "hnlts:LinearTemperatureScaling", "hnlts:LinearFormula"
_HTS = "hnlts:EntropyTemperatureScaling", "hnlts:EntropyFormula"
_HNLTS = "hnlts:EntropyLinearTemperatureScaling", "hnlts:EntropyLinearFormula"
_PTS = "pts:ParametrizedTemperatureScaling", "pts:NetworkFormula"
_BTS = "bts:BinwiseTemperatureScaling", "bts:BinwiseFormula"
_ETS = "ets:EnsembleTemperatureScaling", "ets:EnsembleFormula"
_MONO = "mono:MonotoneScaling", "mono:MonotoneFormula"
_BAYES = "bayes:BayesianTemperatureScaling", "bayes:BayesianFormula"

_SGD = {"solver": "sgd"}
_EVERYWHERE, _NAMED_ONLY = {"in_comparison": True, "in_study": True}, {"in_comparison": False}

_TABLE: tuple[tuple[str, tuple[str, str], str, str, str, dict[str, Any], dict[str, bool]], ...] = (
    ("ts", _TS, "TS", "#6987e1", "s", {}, _EVERYWHERE),
    ("lts", _LTS, "LTS", "#ff1e4b", "v", {}, _EVERYWHERE),
    ("hts", _HTS, "HTS", "#969600", "^", {}, _EVERYWHERE),
    ("hnlts", _HNLTS, "HnLTS", "#b478b4", "D", {}, _EVERYWHERE),
    ("pts", _PTS, "PTS", "#c31eb4", "P", {}, _EVERYWHERE),
    ("pts-ece", _PTS, "PTS-ECE", "#a500ff", "X", {"loss": "ece"}, _EVERYWHERE),
    ("bts", _BTS, "BTS", "#699669", "<", {}, _EVERYWHERE),
    ("ets", _ETS, "ETS", "#9669ff", ">", {}, _EVERYWHERE),
    ("mono", _MONO, "Mono", "#c8781e", "p", {}, _EVERYWHERE),
    ("bayes", _BAYES, "Bayes", "#00872d", "*", {}, _EVERYWHERE),
    ("bayes-bias", _BAYES, "Bayes-bias", "#0096d2", "8", {"class_bias": "auto"}, {"in_comparison": True}),
    # The paper's own fits: ETS by the Brier score, PTS without a prior, training by SGD.
    ("ets-brier", _ETS, "ETS-Brier", "#ff4b00", "d", {"loss": "brier"}, {"in_study": True}),
    ("pts-plain", _PTS, "PTS-plain", "#965a5a", r"$\mathbf{0}$", {"weight_decay": 0.0}, _NAMED_ONLY),
    ("hts-sgd", _HTS, "HTS-SGD", "#78692d", r"$\mathbf{H}$", _SGD, _NAMED_ONLY),
    ("lts-sgd", _LTS, "LTS-SGD", "#e16969", r"$\mathbf{L}$", _SGD, _NAMED_ONLY),
    ("hnlts-sgd", _HNLTS, "HnLTS-SGD", "#d22d78", r"$\mathbf{N}$", _SGD, _NAMED_ONLY),
    ("pts-sgd", _PTS, "PTS-SGD", "#ff00ff", r"$\mathbf{P}$", _SGD, _NAMED_ONLY),
    ("pts-ece-sgd", _PTS, "PTS-ECE-SGD", "#ff00a5", r"$\mathbf{E}$", {**_SGD, "loss": "ece"}, _NAMED_ONLY),
)


def _dash(key: str) -> str:
    """Return a solid line for a method, dots for its training by SGD, dots and dashes for a variant."""
    return ":" if key.endswith("-sgd") else "-." if "-" in key else "-"


CALIBRATORS: dict[str, Method] = {
    key: Method(
        key, estimator, MethodStyle(label, colour, marker, _dash(key)), options, formula_class=formula, **use
    )
    for key, (estimator, formula), label, colour, marker, options, use in _TABLE
}
"""The methods of the package by key: call one to build its calibrator."""

_UNCALIBRATED_STYLE = MethodStyle("Uncalibrated", "#767b82", "o")
_OTHERS = (("#b0622e", r"$\spadesuit$"), ("#16868f", "h"), ("#4f7f2a", r"$\clubsuit$"))


def method_style(name: str) -> MethodStyle:
    """Return how a method is shown; a name that is not in the registry always gets the same style.

    Parameters
    ----------
    name : str
        A key of `CALIBRATORS`, or any other name.

    Examples
    --------
    >>> method_style("ts").label, method_style("my own") == method_style("my own")
    ('TS', True)
    """
    if name == UNCALIBRATED:
        return _UNCALIBRATED_STYLE
    if name in CALIBRATORS:
        return CALIBRATORS[name].style
    # A checksum, since the hash of a string differs between runs.
    return MethodStyle(name.rpartition(":")[2], *_OTHERS[crc32(name.encode()) % len(_OTHERS)])


def key_of(calibrator: Calibrator) -> str:
    """Return the key that builds such a calibrator, with its options: "bayes-bias", not "bayes".

    Examples
    --------
    >>> key_of(make_calibrator("bayes-bias")), key_of(make_calibrator("bayes")), key_of(make_calibrator("ts"))
    ('bayes-bias', 'bayes', 'ts')
    """
    given = calibrator.get_params()
    for key, method in CALIBRATORS.items():
        if method.options and method.options.items() <= given.items() and method.build is type(calibrator):
            return key
    return calibrator.key


def default_method(n_classes: int) -> str:
    """Return the key of the method to use if the user names none.

    Of two classes, a frequency that is off harms more than a changed prediction at 1/2.

    Examples
    --------
    >>> default_method(2), default_method(3)
    ('bayes-bias', 'bayes')
    """
    return "bayes-bias" if n_classes == 2 else "bayes"


def make_calibrator(key: str, **options: Any) -> Calibrator:
    """Build the calibrator of a registry key.

    Parameters
    ----------
    key : str
        One of `CALIBRATORS`.
    **options
        Options of its class; they override the key's.

    Examples
    --------
    >>> make_calibrator("bts", bins=20)
    BinwiseTemperatureScaling(bins=20)
    >>> make_calibrator("pts-ece")
    ParametrizedTemperatureScaling(loss='ece')
    """
    if key not in CALIBRATORS:
        raise unknown_method(key, list(CALIBRATORS))
    calibrator: Calibrator = CALIBRATORS[key](**options)
    return calibrator


def unknown_method(key: object, known: Sequence[str], other: str = "") -> InputError:
    """Return the error for a key that is not one of the known ones; `other` is another way to name one."""
    likely = guess(key, known)
    if key == UNCALIBRATED:
        likely = "none is the classifier without a calibrator: there is nothing to fit. Use its own softmax."
    advice = f"{likely} Name {other}one of {', '.join(known)}.".lstrip()
    return InputError(f"there is no method {excerpt(key)}.", advice=advice)
