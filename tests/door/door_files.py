"""Files as practitioners make them: each is a row of the table in docs/data-files.md, and a test.

To add one, append a Made to FILES and write the docs anew: python tests/door/door_files.py --write
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas

LOGITS = np.array([[1.5, -0.25, 0.5], [0.125, 2.0, -1.0], [-3.0, 0.75, 2.5], [1.0, 0.0, -2.0]])
LABELS = [0, 1, 2, 0]
NAMES = ("cat", "dog", "owl")
WORDS = [NAMES[label] for label in LABELS]
IDS = ["a.png", "b.png", "c,1.png", "d.png"]
PAGE = Path(__file__).parents[2] / "docs" / "data-files.md"
BEGIN, END = "<!-- files -->\n", "<!-- end of files -->\n"


@dataclass
class Made:
    """A file as other tools write it; `by` and `reads` are for the docs, the rest is for the test."""

    by: str
    reads: str
    write: Callable[[str], None]
    name: str = "val.csv"
    options: dict = field(default_factory=lambda: {"kind": "logits"})
    classes: tuple | None = NAMES
    labels: list | None = field(default_factory=lambda: LABELS)
    ids: list | None = None
    refused: tuple[str, ...] = ()
    """Words of the message, if it is refused; `options` is then what the message says to pass."""


def frame(labels=WORDS, columns=NAMES, **more):
    """Return the logits as a data frame."""
    made = pandas.DataFrame(LOGITS, columns=list(columns))
    return made if labels is None else made.assign(**({"label": labels} | more))


def text(content, encoding="utf-8", newline="\n"):
    """Return a function that writes text."""
    return lambda path: Path(path).write_bytes(content.replace("\n", newline).encode(encoding))


def lines(head, separator=",", rows=None, decimal="."):
    """Return a table as text: a header, and cells."""
    if rows is None:
        rows = [[*row, label] for row, label in zip(LOGITS.tolist(), WORDS, strict=True)]
    cells = [
        [str(cell).replace(".", decimal) if isinstance(cell, float) else cell for cell in row] for row in rows
    ]
    return "\n".join([head, *(separator.join(map(str, row)) for row in cells)]) + "\n"


def csv(made=None, index=False):
    """Return a function that writes a frame as pandas does."""
    return lambda path: (frame() if made is None else made).to_csv(path, index=index)


def quoted_rows():
    return [[f'"{i}"', *row, f'"{label}"'] for i, row, label in zip(IDS, LOGITS.tolist(), WORDS, strict=True)]


def parquet(made, **options):
    return lambda path: made().to_parquet(path, **options)


def polars_frame():
    import polars

    return polars.DataFrame(LOGITS, schema=list(NAMES)).with_columns(polars.Series("label", WORDS))


def arrow_stream(path):
    """Write what the datasets package keeps on disk: a stream of record batches."""
    import pyarrow

    table = pyarrow.table({"logits": LOGITS.tolist(), "label": LABELS})
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["logits"], file["labels"] = LOGITS, LABELS
        file["classes"] = np.array(NAMES, dtype=h5py.string_dtype())


def torch_dictionary(path):
    import torch

    torch.save({"logits": torch.tensor(LOGITS), "labels": torch.tensor(LABELS)}, path)


def torch_pair(path):
    import torch

    torch.save((torch.tensor(LOGITS), torch.tensor(LABELS)), path)


def safetensors(path):
    from safetensors.numpy import save_file

    save_file({"logits": LOGITS, "labels": np.array(LABELS)}, path)


def json_lines(record):
    """Return a function that writes a record for each row."""
    pairs = list(zip(LOGITS.tolist(), LABELS, strict=True))
    return text("".join(json.dumps(record(row, label)) + "\n" for row, label in pairs))


def sample(row, label):
    """Return a line of lm-evaluation-harness: scores are texts there, each with whether it is greedy."""
    return {
        "doc_id": 0,
        "doc": {"question": "?", "choices": list(NAMES)},
        "target": str(label),
        "arguments": [["?", f" {name}"] for name in NAMES],
        "resps": [[[str(score), "False"]] for score in row],
        "filtered_resps": [[str(score), "False"] for score in row],
        "acc": float(np.argmax(row) == label),
    }


R_HEAD = '"","cat","dog","owl","label"'
FILES = [
    Made("`df.to_csv(path, index=False)`", "classes by their headers", csv()),
    Made(
        "`df.to_csv(path)`, with the index",
        "the first column, without a name, as ids",
        csv(index=True),
        ids=["0", "1", "2", "3"],
    ),
    Made(
        "pandas, read and written again (`Unnamed: 0`)",
        "the same",
        text(
            lines(
                "Unnamed: 0,cat,dog,owl,label",
                rows=[[i, *row] for i, row in enumerate(frame().values.tolist())],
            )
        ),
        ids=["0", "1", "2", "3"],
    ),
    Made(
        "`pandas.DataFrame(logits).to_csv(path)`, columns 0, 1, 2",
        "classes `0`, `1`, `2`",
        csv(frame(LABELS, range(3))),
        classes=("0", "1", "2"),
    ),
    Made(
        "columns `3`, `5`, `7` with the labels 3, 5, 7",
        "labels by the names of the columns",
        csv(frame([3, 5, 7, 3], (3, 5, 7))),
        classes=("3", "5", "7"),
    ),
    Made(
        "columns `logit_0`, `logit_1`, ..., and others",
        "classes by number; other columns are ignored",
        text(
            lines(
                "logit_0,logit_1,logit_2,LABEL",
                rows=[[*r, k] for r, k in zip(LOGITS.tolist(), LABELS, strict=True)],
            )
        ),
        options={},
        classes=None,
    ),
    Made(
        "columns `logit_cat`, `logit_dog`, ...",
        "classes by their names",
        csv(frame(columns=[f"logit_{name}" for name in NAMES]).assign(fold=1)),
        options={},
    ),
    Made(
        "labels in a column `target`, `y`, `y_true` or `class`",
        "labels, in upper or lower case",
        csv(frame().rename(columns={"label": "Target"})),
    ),
    Made(
        "labels in a column with another name",
        "`--label-column answer`",
        csv(frame().rename(columns={"label": "answer"})),
        options={"kind": "logits", "label_column": "answer"},
        refused=("column 'answer' must hold numbers; found 'cat'",),
    ),
    Made(
        "two columns that could be the labels",
        "`--label-column label`, if scores are named `logit_...`",
        csv(frame(columns=[f"logit_{n}" for n in NAMES], y=0)),
        options={"label_column": "label"},
        refused=("must have one column of labels; found 'label' and 'y'. Pass label_column='label' or",),
    ),
    Made(
        "text ids in a column",
        "`--id-column image`",
        csv(frame(image=IDS)),
        options={"kind": "logits", "id_column": "image"},
        ids=IDS,
        refused=("column 'image' must hold numbers; found 'a.png'. If it names", "Pass id_column='image'."),
    ),
    Made(
        "R, `write.csv(d, path)`",
        "row names as ids; quotes are removed, even around commas",
        text(lines(R_HEAD, rows=quoted_rows())),
        ids=IDS,
    ),
    Made(
        'R, `write.table(d, path, sep = "\\t")`, a header with one cell fewer',
        "row names as ids",
        text(lines('"cat"\t"dog"\t"owl"\t"label"', "\t", quoted_rows())),
        name="val.tsv",
        ids=IDS,
    ),
    Made(
        "R, `write.csv2(d, path)`: semicolons and decimal commas",
        "the same numbers",
        text(lines(R_HEAD.replace(",", ";"), ";", quoted_rows(), ",")),
        ids=IDS,
    ),
    Made(
        "Excel, CSV UTF-8: a byte order mark, CRLF",
        "classes by their headers",
        text(lines("cat,dog,owl,label"), "utf-8-sig", "\r\n"),
    ),
    Made(
        "Excel in a language with decimal commas",
        "semicolons as separators, decimal commas",
        text(lines("cat;dog;owl;label", ";", decimal=","), "utf-8-sig", "\r\n"),
    ),
    Made(
        'Excel, "Unicode text": tabs in UTF-16',
        "classes by their headers; name it `.tsv`",
        text(lines("cat\tdog\towl\tlabel", "\t"), "utf-16", "\r\n"),
        name="val.tsv",
    ),
    Made("a table separated by `|`", "classes by their headers", text(lines("cat|dog|owl|label", "|"))),
    Made("`df.to_csv('val.csv.gz')`", "decompressed while reading", csv(), name="val.csv.gz"),
    Made(
        "decimal points and decimal commas in one file",
        "refused",
        text("cat\tdog\tlabel\n1.5\t2\tcat\n1,234\t0\tdog\n"),
        name="val.tsv",
        refused=("line 3: all decimal marks must be points, or all commas; found both",),
        classes=None,
    ),
    Made(
        "an empty cell",
        "refused, with its line and column",
        text("cat,dog,label\n1.5,2,cat\n,0,dog\n"),
        refused=("line 3, column 'cat' must hold a number; found an empty cell",),
        classes=None,
    ),
    Made(
        "a table without a header",
        "refused: add a line that names the columns",
        text("a.png,0.5,2\nb.png,1.5,0\n"),
        refused=("the first line must name the columns", "found '0.5' among the names"),
        classes=None,
    ),
    Made(
        "`df.to_parquet(path)`, with a text index or a named one",
        "the index as ids",
        parquet(lambda: frame().set_index(pandas.Index(IDS, name="image"))),
        name="val.parquet",
        ids=IDS,
    ),
    Made(
        "`df.to_parquet(path)`, a categorical label",
        "labels by name",
        parquet(lambda: frame().astype({"label": "category"})),
        name="val.parquet",
    ),
    Made(
        "Polars, `df.write_parquet(path)`",
        "labels by name",
        lambda path: polars_frame().write_parquet(path),
        name="val.parquet",
    ),
    Made("Polars, `df.write_csv(path)`", "labels by name", lambda path: polars_frame().write_csv(path)),
    Made(
        "Polars, `df.write_ipc(path)`",
        "labels by name",
        lambda path: polars_frame().write_ipc(path),
        name="val.arrow",
    ),
    Made(
        "`df.to_feather(path)`", "labels by name", lambda path: frame().to_feather(path), name="val.feather"
    ),
    Made(
        "an Arrow stream with lists, as the datasets package stores it",
        "lists in `logits`",
        arrow_stream,
        name="val.arrow",
        options={},
        classes=None,
    ),
    Made(
        "`df.to_excel(path, index=False)`",
        "the first sheet, labels by name",
        lambda path: frame().to_excel(path, index=False),
        name="val.xlsx",
    ),
    Made(
        "h5py, datasets `logits`, `labels`, `classes`",
        "labels by number, class names",
        hdf5,
        name="val.h5",
        options={},
    ),
    Made(
        "`torch.save({'logits': ..., 'labels': ...}, path)`",
        "by key",
        torch_dictionary,
        name="val.pt",
        options={},
        classes=None,
    ),
    Made(
        "`torch.save((logits, labels), path)`",
        "as a pair; `--input logits`",
        torch_pair,
        name="val.pt",
        classes=None,
    ),
    Made("safetensors, `save_file`", "by key", safetensors, name="val.safetensors", options={}, classes=None),
    Made(
        "a record with a list on each line",
        "by key",
        json_lines(lambda row, label: {"logits": row, "label": label}),
        name="val.jsonl",
        options={},
        classes=None,
    ),
    Made(
        "a record with a score per class on each line",
        "classes by their names",
        json_lines(lambda row, label: {"logits": dict(zip(NAMES, row, strict=True)), "label": NAMES[label]}),
        name="val.jsonl",
        options={},
    ),
    Made(
        "lm-evaluation-harness, multiple choice",
        "log-likelihoods as logits, `target` as label",
        json_lines(sample),
        name="samples_task_2025-01-01T00-00-00.000000.jsonl",
        options={},
        classes=None,
    ),
    Made(
        "`np.savez(path, logits=..., labels=names, classes=clf.classes_)`",
        "labels by the names in `classes`, or `class_names`",
        lambda path: np.savez(path, logits=LOGITS, labels=np.array(WORDS), classes=np.array(NAMES)),
        name="val.npz",
        options={},
    ),
    Made(
        "`np.savez` with text labels and no `classes`",
        "`--classes cat,dog,owl`, in the order of the columns, or `--classes @names.txt`",
        lambda path: np.savez(path, logits=LOGITS, labels=np.array(WORDS)),
        name="val.npz",
        options={"classes": "cat,dog,owl"},
        refused=(
            "labels that are names, 'cat', 'dog', 'owl', need the names",
            "Pass classes=['FIRST', 'SECOND', '...'].",
        ),
    ),
    Made(
        "`np.savez` with an array of Python objects",
        "refused: save `np.array(labels, dtype=str)`",
        lambda path: np.savez(path, logits=LOGITS, labels=np.array(WORDS, object), classes=np.array(NAMES)),
        name="val.npz",
        refused=("holds Python objects", "Save text as np.array(labels, dtype=str)"),
        classes=None,
    ),
]


def table():
    """Return the table of the docs."""
    rows = [f"| {made.by} | `{made.name}` | {made.reads} |" for made in FILES]
    return "\n".join(["| made by | file | read as |", "|---|---|---|", *rows]).replace("`|`", "`\\|`") + "\n"


if __name__ == "__main__" and "--write" in sys.argv:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}")
