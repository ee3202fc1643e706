"""Tables of the page that compares libraries, from its CSV files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from peers.plan import CONTENDERS, REFERENCE, SIZES, Contender
from peers_results import Results, Row

NOTHING, NOT_RUN, FAILED = "n/a", "not run", "failed"
TOLERANCE = 1e-3  # of T, as for the hard inputs
GROUPS = {
    "determined": "has a best temperature, which should be found",
    "undetermined": "has none: a warning or a refusal is best",
    "invalid": "is invalid and should be refused",
}
GOOD = {"determined": {"right"}, "undetermined": {"right", "refused"}, "invalid": {"refused"}}
SINGLE = [contender for contender in CONTENDERS if contender.single_temperature]
PEERS = [contender for contender in CONTENDERS if not contender.library.startswith("temperance")]
Size = tuple[int, int]
Entry = Callable[[Contender, Size], str]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def short(ratio: float) -> str:
    """Return a ratio with two or three digits."""
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


class Speed:
    """The measurements by method, size and number of threads."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = {
            (row["library"], row["method"], int(row["rows"]), int(row["classes"]), int(row["threads"])): row
            for row in rows
        }

    def row(self, contender: Contender, size: Size, threads: int = 1) -> Row | None:
        """Return a measurement."""
        return self.rows.get((contender.library, contender.method, *size, threads))

    def value(self, contender: Contender, size: Size, name: str, threads: int = 1) -> float | None:
        """Return a number, where there is one."""
        row = self.row(contender, size, threads)
        return float(row[name]) if row and row.get(name) else None

    def ratio(self, contender: Contender, size: Size, name: str) -> float | None:
        """Return a time as a multiple of that of our TS."""
        own, ours = self.value(contender, size, name), self.value(REFERENCE, size, name)
        return own / ours if own is not None and ours else None

    def error(self, contender: Contender, size: Size) -> float | None:
        """Return the relative error of the temperature."""
        found, best = (self.value(contender, size, name) for name in ("temperature", "best_temperature"))
        return abs(found / best - 1) if found is not None and best else None

    def mark(self, contender: Contender, size: Size, name: str) -> str:
        """Return a star for a time in which a wrong temperature was found."""
        error = self.error(contender, size)
        wrong = error is not None and error > TOLERANCE
        return "\\*" if wrong and not name.startswith("predict") else ""

    def missing(self, contender: Contender, size: Size) -> str:
        """Return why there is no number."""
        if contender.n_classes not in (None, size[1]):
            return NOTHING
        row = self.row(contender, size)
        if row is None:
            return NOT_RUN
        return FAILED if row["problem"] else NOTHING


def by_size(
    speed: Speed, entry: Entry, sizes: Sequence[Size] = SIZES, of: Sequence[Contender] = CONTENDERS
) -> str:
    """Return a table with a line for each method and a column for each size."""
    head = ["", *(f"{n:,} \u00d7 {k:,}" for n, k in sizes)]
    rows = [[each.label, *(entry(each, size) or speed.missing(each, size) for size in sizes)] for each in of]
    return markdown(head, rows)


def ratios(speed: Speed, name: str) -> str:
    """Return times as multiples of those of our TS."""

    def entry(contender: Contender, size: Size) -> str:
        ratio = speed.ratio(contender, size, name)
        return "" if ratio is None else short(ratio) + speed.mark(contender, size, name)

    return by_size(speed, entry)


def accuracy(speed: Speed) -> str:
    """Return the relative errors of the temperatures."""

    def entry(contender: Contender, size: Size) -> str:
        error = speed.error(contender, size)
        return "" if error is None else f"{error:.0e}"

    return by_size(speed, entry, of=SINGLE)


def memory(speed: Speed) -> str:
    """Return what a fit adds to peak memory, of the array's bytes."""

    def entry(contender: Contender, size: Size) -> str:
        added = speed.value(contender, size, "added_memory")
        return "" if added is None else f"{100 * added:,.0f}%"

    return by_size(speed, entry, SIZES[-2:])


def hard_inputs(rows: Sequence[Row]) -> str:
    """Return how often each library gives the best answer, by the kind of input."""
    shown = [each for each in SINGLE if any(row["library"] == each.library for row in rows)]
    lines = []
    for kind, title in GROUPS.items():
        of_kind = [row for row in rows if row["kind"] == kind]
        good = Counter(row["library"] for row in of_kind if row["verdict"] in GOOD[kind])
        total = len({row["input"] for row in of_kind})
        lines.append([f"{title} ({total} inputs)", *(str(good[each.library]) for each in shown)])
    return markdown(["input", *(each.library for each in shown)], lines)


def versions(rows: Sequence[Row]) -> str:
    """Return what was installed, or why nothing was."""
    return markdown(
        ["library", "installed"], [[row["library"], row["versions"] or row["problem"]] for row in rows]
    )


def all_tables(results: Results) -> dict[str, str]:
    """Return the tables by the names of their blocks."""
    speed = Speed(results.speed)
    return {
        "fit": ratios(speed, "fit_cpu"),
        "predict": ratios(speed, "predict_cpu"),
        "accuracy": accuracy(speed),
        "memory": memory(speed),
        "inputs": hard_inputs(results.inputs),
        "versions": versions(results.versions),
    }
