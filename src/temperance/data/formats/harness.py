"""Samples of lm-evaluation-harness (its log_samples): the log-likelihoods of the answers to each question.

A line has `filtered_resps`, with one pair of log-likelihood and is_greedy per answer, as numbers or as text.
It also has `target` (the correct answer), `arguments` (the context and the text of each answer), `doc` (the
question) and metrics, such as `acc`. Log-likelihoods are logits. A question with fewer answers than another
has -inf in the missing columns.

`target` is an index or a text, and the file writes both as text: "1" could be either. We check its meaning
against `acc`, which is 1 if the likeliest answer is correct.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats import json_lines
from temperance.data.formats.json_lines import Record, first_record, records, shown
from temperance.data.lazy_array import LazyArray, RecordArray, UnreadableArray
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy

_RESPONSES = ("filtered_resps", "resps")
_ANSWERS = ("choices", "endings", "options")
_OTHER_LABELS = Remedy("labels", ("FILE",))


def are_samples(members: dict[str, LazyArray]) -> bool:
    """Say whether the arrays of a file come from valid samples."""
    labels = members.get("labels")
    return isinstance(labels, RecordArray) and labels.read is _right_answer


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return log-likelihoods as logits, correct answers as labels. All lines are read to find the widest.

    Other records are read as JSON Lines in general.
    """
    if not first_record(path).fields.keys() & set(_RESPONSES):
        return json_lines.members(path, choice)
    n_rows = width = 0
    filters = set()
    try:
        for record in records(path):
            n_rows += 1
            width = max(width, len(_log_likelihoods(record)))
            filters.add(shown(record.fields.get("filter")))
            if len(filters) > 1:
                raise record.error(
                    "all lines must be of one filter, or a question would count twice; found "
                    f"{' and '.join(sorted(filters))}. Keep the lines of one."
                )
    except InputError as error:  # so that other files of a folder can still be read
        return {key: UnreadableArray(path, key, error) for key in ("logits", "labels")}
    every = partial(records, path)
    read = partial(_row, width=width, length_normalised=choice.length_normalised)
    return {
        "logits": RecordArray(path, "logits", (n_rows, width), np.float64, every, read),
        "labels": RecordArray(path, "labels", (n_rows,), np.int64, every, _right_answer),
    }


def _log_likelihoods(record: Record) -> list[float]:
    """Return the log-likelihood of each answer."""
    name = next((name for name in _RESPONSES if name in record.fields), _RESPONSES[0])
    responses = record.field(name)
    if not isinstance(responses, list) or not responses:
        raise record.error(f"{name!r} must be a list with one entry per answer; found {shown(responses)}.")
    scores = [_log_likelihood(record, name, response) for response in responses]
    # For metrics of mutual information, the harness scores each answer again at the end, without its
    # question.
    if "acc_mutual_info" in record.fields and len(scores) % 2 == 0:
        scores = scores[: len(scores) // 2]
    if len(scores) < 2:
        raise record.error(
            "must have the log-likelihoods of two or more answers; found one, as in tasks without choices. "
            "Use the samples of a multiple-choice task."
        )
    return scores


def _log_likelihood(record: Record, name: str, response: Any) -> float:
    pair = response
    while isinstance(pair, list) and len(pair) == 1:  # `resps` has one list of repeats per answer
        pair = pair[0]
    if isinstance(pair, list) and len(pair) == 2 and str(pair[1]) in ("True", "False"):
        try:
            score = float(pair[0])
        except (TypeError, ValueError, OverflowError):
            score = math.nan
        if not math.isnan(score):
            return score
        raise record.error(
            f"{name!r} must have a number as the log-likelihood of each answer; found {shown(pair[0])}. "
            "Drop this line, or evaluate the task again."
        )
    raise record.error(
        f"{name!r} must have one log-likelihood and is_greedy per answer, as in multiple-choice tasks; "
        f"found {shown(response)}, as in tasks that generate text. Use the samples of a multiple-choice "
        "task."
    )


def _arguments(record: Record) -> list[str] | None:
    """Return the text of each answer as the model saw it, with its leading space; None if it is missing."""
    held = record.fields.get("arguments", record.fields.get("gen_args"))
    requests = list(held.values()) if isinstance(held, dict) else held
    if not isinstance(requests, list):
        return None
    texts = []
    for request in requests:
        words = list(request.values()) if isinstance(request, dict) else request
        if not isinstance(words, list) or len(words) < 2 or not isinstance(words[1], str):
            return None
        texts.append(words[1])
    return texts


def _row(record: Record, width: int, *, length_normalised: bool) -> NDArray[np.float64]:
    """Return the log-likelihood of each answer to a question, in the order of the answers."""
    scores = np.array(_log_likelihoods(record))
    if length_normalised:
        scores /= _lengths(record, len(scores))
    row = np.full(width, -np.inf)
    row[: len(scores)] = scores
    return row


def _lengths(record: Record, n_answers: int) -> list[int]:
    """Return the number of characters of each answer without its leading space, as acc_norm does."""
    texts = _arguments(record)
    if texts is None or len(texts) < n_answers:
        raise record.error(
            "'arguments' must have the text of each answer, to normalise by its length; found "
            f"{shown(record.fields.get('arguments'))}.",
            Remedy("length_normalised"),
        )
    lengths = [len(text.removeprefix(" ")) for text in texts[:n_answers]]
    if not all(lengths):
        raise record.error(
            f"answer {lengths.index(0)} is empty, so it cannot be normalised by its length.",
            Remedy("length_normalised"),
        )
    return lengths


def _right_answer(record: Record) -> int:
    """Return the position of the correct answer to a question."""
    scores = _log_likelihoods(record)
    target = record.field("target")
    meant = _meant(record, target, len(scores))
    likeliest = int(np.argmax(scores))
    acc = record.fields.get("acc")
    if acc is not None:
        if acc not in (0, 1):
            raise record.error(
                f"exactly one answer must be correct, and 'acc' must be 0 or 1; found {shown(acc)}.",
                _OTHER_LABELS,
            )
        agreeing = {place for place in meant if (place == likeliest) == bool(acc)}
        if meant and not agreeing:
            raise record.error(
                f"'target' and 'acc' must agree; found the target {shown(target)} and acc {acc:g}, while the "
                f"likeliest answer is {likeliest}, counted from 0.",
                _OTHER_LABELS,
            )
        meant = agreeing
    if len(meant) != 1:
        raise record.error(
            f"'target' must be the index or the text of one of the {len(scores)} answers; found "
            f"{shown(target)}, which matches {'several' if meant else 'none'} of them.",
            _OTHER_LABELS,
        )
    return meant.pop()


def _meant(record: Record, target: Any, n_answers: int) -> set[int]:
    """Return the positions of all answers that the target could mean."""
    if isinstance(target, str) and target.startswith("["):
        with suppress(ValueError, RecursionError):  # other text stays as it is
            target = json.loads(target)  # a list of numbers, written as text
    if isinstance(target, list):
        if len(target) != 1:
            raise record.error(
                f"exactly one answer must be correct; found the targets {shown(target)}.", _OTHER_LABELS
            )
        target = target[0]
    text = str(target).strip()
    meant = {
        place
        for texts in _texts(record, n_answers)
        for place, answer in enumerate(texts)
        if answer.strip() == text
    }
    if text.isascii() and text.isdigit() and int(text[:9]) < n_answers and len(text) < 9:
        meant.add(int(text))
    return meant


def _texts(record: Record, n_answers: int) -> Iterator[list[str]]:
    """Yield the lists that name all answers: their texts or letters, as sent to the model or as in `doc`."""
    if arguments := _arguments(record):
        yield arguments[:n_answers]
    doc = record.fields.get("doc")
    for held in map(doc.get, _ANSWERS) if isinstance(doc, dict) else ():
        lists = [held]
        if isinstance(held, dict):  # as {"text": [...], "label": ["A", ...]}, or {"A": text, ...}
            lists = [*held.values(), list(held), list(held.values())]
        for texts in lists:
            if isinstance(texts, list) and len(texts) == n_answers and all(isinstance(t, str) for t in texts):
                yield texts
