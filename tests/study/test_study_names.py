"""Display names of tasks."""

from pathlib import Path

import pytest

from temperance.study.names import DATASETS, MODELS, task_name
from temperance.study.tasks import TaskFile


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cifar100__resnet110-brier-focalcal", "CIFAR-100, ResNet-110 (Brier loss)"),
        ("cifar10__my_net-3", "CIFAR-10, my_net-3"),
        ("quiz__org__model", "quiz, org/model"),
        ("plain", "plain"),
        ("__odd", "__odd"),
    ],
)
def test_known_parts_have_display_names_and_others_are_unchanged(name, words):
    assert task_name(TaskFile(name, Path("a.npz"), "0", 1, 1, 2)) == words


def test_names_are_short_enough_for_a_title():
    longest = max(map(len, DATASETS.values())) + max(map(len, MODELS.values()))
    assert longest + 2 <= 15 * 3.4 + 5
