"""Samples of lm-evaluation-harness, in the form that its documentation and its tracker give them."""

import gzip
import json

import numpy as np
import pytest

from temperance import InputError
from temperance.data import open_rows

QUESTIONS = [
    ([-3.25, -1.5, -7.0, -2.0], ["a cat", "a dog", "an elephant", "no"], 1),
    ([-2.0, -6.5], ["yes", "certainly not"], 0),
    ([-4.0, -5.0, -4.5], ["red", "green", "blue"], 2),
]
LOGITS = np.array([[-3.25, -1.5, -7.0, -2.0], [-2.0, -6.5, -np.inf, -np.inf], [-4.0, -5.0, -4.5, -np.inf]])


def sample(number, scores, answers, right, **changes):
    """Return a line as `--log_samples` writes it: numbers as text, arguments by their names."""
    return {
        "doc_id": number,
        "doc": {"question": f"Question {number}?", "choices": answers},
        "target": str(right),
        "arguments": {
            f"gen_args_{k}": {"arg_0": "Question:", "arg_1": f" {answer}"} for k, answer in enumerate(answers)
        },
        "resps": [[[str(score), "False"]] for score in scores],
        "filtered_resps": [[str(score), "False"] for score in scores],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(np.argmax(scores) == right),
    } | changes


def save(path, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def samples():
    return [sample(number, *question) for number, question in enumerate(QUESTIONS)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "samples_quiz_2026-01-01T00-00-00.jsonl"


def right_answers(path, line):
    return open_rows(save(path, [line])).labels.tolist()


@pytest.mark.parametrize("name", ["samples_quiz.jsonl", "samples_quiz.jsonl.gz", "samples_quiz.ndjson"])
def test_log_likelihoods_are_logits_and_missing_answers_are_masked(tmp_path, samples, name):
    rows = open_rows(save(tmp_path / name, samples))
    assert rows.kind == "logits"
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.labels.tolist() == [1, 0, 2]
    assert [len(block) for block in rows.blocks(2)] == [2, 1]


def test_numbers_and_pairs_of_arguments_as_older_versions_write_them(path, samples):
    for line, (scores, answers, right) in zip(samples, QUESTIONS, strict=True):
        line["filtered_resps"] = [[score, False] for score in scores]
        line["arguments"] = [["Question:", f" {answer}"] for answer in answers]
        line["target"] = right
    rows = open_rows(save(path, samples))
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    assert rows.labels.tolist() == [1, 0, 2]


def test_the_nested_responses_are_read_where_no_filter_was_applied(path, samples):
    for line in samples:
        del line["filtered_resps"]
    np.testing.assert_array_equal(open_rows(save(path, samples)).logits(), LOGITS)


def test_scores_by_length_choose_what_acc_norm_chooses(path, samples):
    logits = open_rows(save(path, samples), length_normalised=True).logits()
    lengths = np.array([[5, 5, 11, 2], [3, 13, 1, 1], [3, 5, 4, 1]])
    np.testing.assert_array_equal(logits, LOGITS / lengths)


@pytest.mark.parametrize(
    ("target", "right"),
    [
        (2, 2),
        ("2", 2),
        ([2], 2),
        ("[2]", 2),
        ("blue", 2),
        (" blue", 2),
    ],
)
def test_a_target_is_an_index_or_a_text(path, target, right):
    scores, answers, _ = QUESTIONS[2]
    assert right_answers(path, sample(0, scores, answers, right, target=target)) == [right]


@pytest.mark.parametrize(
    "doc",
    [
        {"endings": ["one", "two", "three"]},
        {"options": {"A": "one", "B": "two", "C": "three"}},
        {"choices": {"text": ["one", "two", "three"], "label": ["A", "B", "C"]}},
    ],
)
def test_a_text_is_looked_for_in_the_document(path, doc):
    line = sample(0, [-1.0, -2.0, -3.0], ["1", "2", "3"], 1, target="two", doc=doc)
    assert right_answers(path, line) == [1]
    if "endings" not in doc:
        assert right_answers(path, line | {"target": "B"}) == [1]


def test_a_target_that_may_be_an_index_or_a_text_is_decided_by_acc(path):
    # "1" is the second answer, or the text of the first.
    line = sample(0, [-1.0, -2.0, -3.0], ["1", "2", "3"], 0, target="1")
    assert right_answers(path, line | {"acc": 1.0}) == [0]
    assert right_answers(path, line | {"acc": 0.0}) == [1]
    del line["acc"]
    with pytest.raises(InputError, match=r"line 1: .* found \"1\", which matches several .* Pass labels="):
        right_answers(path, line)


def test_contexts_that_share_an_ending_are_distinguished_by_acc(path):
    line = sample(0, [-9.0, -8.0], ["is big.", "is big."], 0, target=" is big.")
    assert right_answers(path, line | {"acc": 0.0}) == [0]
    assert right_answers(path, line | {"acc": 1.0}) == [1]


def test_scores_without_the_question_are_left_out(path):
    scores, answers, right = QUESTIONS[1]
    line = sample(0, [*scores, -0.5, -0.1], [*answers, *answers], right, acc=1.0, acc_mutual_info=0.0)
    assert open_rows(save(path, [line])).logits().tolist() == [scores]


def test_labels_may_stay_unread(path, samples):
    samples[1]["target"] = "nothing of the kind"
    rows = open_rows(save(path, samples), need_labels=False)
    assert rows.labels is None
    np.testing.assert_array_equal(rows.logits(), LOGITS)
    labels = path.with_name("labels.npy")
    np.save(labels, [1, 0, 2])
    assert open_rows(path, labels=labels).labels.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"filtered_resps": ["The answer is 4."]},
            "as in tasks that generate text. Use the samples of a mul",
        ),
        ({"filtered_resps": [["-3.0", "False"]]}, "found one, as in tasks without choices"),
        ({"filtered_resps": [["nan", "False"], ["-1.0", "True"]]}, "a number as the log-likelihood of each"),
        ({"filtered_resps": []}, "must be a list with one entry per answer; found []"),
        (
            {"filter": "other"},
            'must be of one filter, or a question would count twice; found "none" and "other"',
        ),
        ({"target": "7"}, 'the index or the text of one of the 2 answers; found "7", which matches none'),
        ({"target": [0, 1]}, "exactly one answer must be correct; found the targets [0, 1]"),
        ({"target": "[0, 1]"}, "exactly one answer must be correct; found the targets [0, 1]"),
        ({"target": None}, "'target' must be on every line; found null"),
        ({"acc": 0.43}, "exactly one answer must be correct, and 'acc' must be 0 or 1; found 0.43"),
        (
            {"target": "1"},
            "'target' and 'acc' must agree; found the target \"1\" and acc 1, while the likeliest",
        ),
    ],
)
def test_an_unusable_line_is_refused_with_its_number(path, samples, changes, words):
    samples[1] |= changes
    with pytest.raises(InputError) as caught:
        open_rows(save(path, samples))
    message = str(caught.value)
    assert message.startswith(f"{path}")
    assert "line 2: " in message
    assert words in message, message


def test_lengths_need_the_texts(path, samples):
    samples[2]["arguments"] = None
    rows = open_rows(save(path, samples), length_normalised=True)
    with pytest.raises(InputError, match=r"line 3: 'arguments' must have .* Leave length_normalised out"):
        rows.logits()
    np.save(path.with_suffix(".npy"), LOGITS)
    with pytest.raises(
        InputError, match=r"must hold samples of lm-evaluation-harness.*Leave length_normalised"
    ):
        open_rows(path.with_suffix(".npy"), kind="logits", length_normalised=True)
