"""Tables of the page that compares libraries, from its CSV files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from peers.plan import CONTENDERS, LARGEST, REFERENCE, SIZES, Contender
from peers_results import Results, Row

NOTHING, NOT_RUN = "n/a", "not run"
TOLERANCE = 1e-3  # of T, as for the hard inputs
AHEAD, NEGLIGIBLE = 0.95, 1e-6  # ratios of times closer to 1, and smaller errors of T, are ties
TIMES = {
    "fit_cpu": "fit",
    "first_fit_cpu": "first fit",
    "start_cpu": "imports and first fit",
    "predict_cpu": "prediction",
}
GROUPS = {
    "determined": "There is a best temperature: *right* is best",
    "undetermined": "There is none: *right*, with a warning, or *refused* is best",
    "invalid": "No answer can be right: *refused* is best",
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
        return row["problem"].split(":")[0] or NOTHING


def by_size(
    speed: Speed, entry: Entry, sizes: Sequence[Size] = SIZES, of: Sequence[Contender] = CONTENDERS
) -> str:
    """Return a table with a line for each method and a column for each size."""
    head = ["", *(f"{n} x {k}" for n, k in sizes)]
    rows = [[each.label, *(entry(each, size) or speed.missing(each, size) for size in sizes)] for each in of]
    return markdown(head, rows)


def ratios(speed: Speed, name: str) -> str:
    """Return times as multiples of those of our TS."""

    def entry(contender: Contender, size: Size) -> str:
        ratio = speed.ratio(contender, size, name)
        return "" if ratio is None else short(ratio) + speed.mark(contender, size, name)

    return by_size(speed, entry)


def passes(speed: Speed, name: str) -> str:
    """Return times as multiples of one np.exp pass."""

    def entry(contender: Contender, size: Size) -> str:
        value = speed.value(contender, size, name)
        return "" if value is None else short(value) + speed.mark(contender, size, name)

    return by_size(speed, entry)


def second_thread(speed: Speed) -> str:
    """Return how many times as fast a fit is with two threads, by wall time."""
    if not any(threads == 2 for *_, threads in speed.rows):
        return f"*{NOT_RUN.capitalize()} yet.*"

    def entry(contender: Contender, size: Size) -> str:
        one, two = (speed.value(contender, size, "fit_wall", threads) for threads in (1, 2))
        return "" if one is None or not two else short(one / two)

    return by_size(speed, entry, [size for size in SIZES if size != LARGEST])


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
        return "" if added is None else f"{100 * added:,.0f} %"

    return by_size(speed, entry, SIZES[-2:])


def hard_inputs(rows: Sequence[Row]) -> str:
    """Return the verdicts, in three tables by the kind of input."""
    verdicts = {(row["library"], row["input"]): row["verdict"] for row in rows}
    shown = [each for each in SINGLE if any(library == each.library for library, _ in verdicts)]
    parts = []
    for kind, title in GROUPS.items():
        names = list(dict.fromkeys(row["input"] for row in rows if row["kind"] == kind))
        table = [[name, *(verdicts.get((each.library, name), NOTHING) for each in shown)] for name in names]
        good = [sum(verdicts.get((each.library, name)) in GOOD[kind] for name in names) for each in shown]
        total = [f"**best answer, of {len(names)}**", *(f"**{count}**" for count in good)]
        parts.append(markdown([title, *(each.library for each in shown)], [*table, total]))
    return "\n\n".join(parts)


def versions(rows: Sequence[Row]) -> str:
    """Return what was installed, or why nothing was."""
    return markdown(
        ["library", "installed"], [[row["library"], row["versions"] or row["problem"]] for row in rows]
    )


def ahead(speed: Speed, inputs: Sequence[Row]) -> str:
    """Return where another library does better than our TS, as a list."""
    lines = []
    for name, what in TIMES.items():
        for peer in PEERS:
            faster = [
                f"{size[0]} x {size[1]} ({short(ratio)})"
                for size in SIZES
                if (ratio := speed.ratio(peer, size, name)) is not None
                and ratio < AHEAD
                and not speed.mark(peer, size, name)
            ]
            if faster:
                lines.append(f"- {peer.library}, {what}, time as a multiple of ours: {', '.join(faster)}")
    return (
        "\n".join([*lines, *memory_ahead(speed), *accuracy_ahead(speed), *inputs_ahead(inputs)]) or "Nowhere."
    )


def memory_ahead(speed: Speed) -> list[str]:
    """Return the libraries that add less memory to the largest task."""
    ours = speed.value(REFERENCE, LARGEST, "added_memory")
    lines = []
    for peer in PEERS:
        added = speed.value(peer, LARGEST, "added_memory")
        if added is not None and ours is not None and added < ours:
            lines.append(f"- {peer.library}, memory at {LARGEST[0]} x {LARGEST[1]}: {100 * added:.0f} %")
    return lines


def accuracy_ahead(speed: Speed) -> list[str]:
    """Return the libraries whose temperature is closer to the best one."""
    lines = []
    for peer in PEERS:
        closer = [
            f"{size[0]} x {size[1]}"
            for size in SIZES
            if (ours := speed.error(REFERENCE, size)) is not None
            and ours > NEGLIGIBLE
            and (error := speed.error(peer, size)) is not None
            and error < ours
        ]
        if closer:
            lines.append(f"- {peer.library}, temperature closer to the best one: {', '.join(closer)}")
    return lines


def inputs_ahead(rows: Sequence[Row]) -> list[str]:
    """Return the hard inputs that others answer best and we do not."""
    best = {(row["library"], row["input"]) for row in rows if row["verdict"] in GOOD.get(row["kind"], ())}
    found = Counter(name for library, name in best if (REFERENCE.library, name) not in best)
    lines = []
    for name in sorted(found):
        libraries = [each.library for each in PEERS if (each.library, name) in best]
        lines.append(f"- hard input *{name}*: {', '.join(libraries)}")
    return lines


def all_tables(results: Results) -> dict[str, str]:
    """Return the tables by the names of their blocks."""
    speed = Speed(results.speed)
    return {
        "ahead": ahead(speed, results.inputs),
        "fit": ratios(speed, "fit_cpu"),
        "fit-passes": passes(speed, "fit_cpu"),
        "first-fit": ratios(speed, "first_fit_cpu"),
        "start": ratios(speed, "start_cpu"),
        "predict": ratios(speed, "predict_cpu"),
        "predict-passes": passes(speed, "predict_cpu"),
        "threads": second_thread(speed),
        "accuracy": accuracy(speed),
        "memory": memory(speed),
        "inputs": hard_inputs(results.inputs),
        "versions": versions(results.versions),
    }
