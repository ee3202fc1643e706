"""Display names of data sets and models: names of known tasks, and a rule for all others.

A task file is named `dataset__model`. A known part has its usual name. Any other is shown unchanged, except
that two underscores in a model become a slash, since lm-evaluation-harness writes `org/model` as
`org__model`.
"""

from __future__ import annotations

from temperance.study.tasks import TaskFile

DATASETS: dict[str, str] = {
    "20news": "20 Newsgroups",
    "agnews": "AG News",
    "banking77": "Banking77",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "clinc150": "CLINC150",
    "emotion": "Emotion",
    "eurosat": "EuroSAT",
    "filetype": "File types",
    "iemocap": "IEMOCAP",
    "imagenet": "ImageNet",
    "imdb": "IMDB",
    "kitti": "KITTI",
    "langid75-single-words": "Language of words",
    "lapgyn4-anatomical": "LapGyn4 anatomical",
    "lapgyn4-surgical": "LapGyn4 surgical",
    "letter": "Letter",
    "mnist": "MNIST",
    "nextchar-reddit": "Next character (Reddit)",
    "pathmnist": "PathMNIST",
    "pcam": "PCam",
    "pneumoniamnist": "PneumoniaMNIST",
    "satimage": "Satimage",
    "spkrverif": "Speaker verification",
    "sst2": "SST-2",
}
MODELS: dict[str, str] = {
    "cleanlab": "cross-validated model",
    "densenet-bc-100-netcal": "DenseNet-BC-100",
    "densenet121-brier-focalcal": "DenseNet-121 (Brier loss)",
    "densenet121-flsd53-focalcal": "DenseNet-121 (focal loss)",
    "efficientnet-lite0": "EfficientNet-Lite0",
    "emotion-final-psrcal": "emotion model",
    "falcon-7b-1shot": "Falcon-7B (1-shot)",
    "fasttext-cleanlab": "fastText",
    "fasttext-lid176": "fastText lid.176",
    "gnb": "Gaussian naive Bayes",
    "gpt2-0shot": "GPT-2 (0-shot)",
    "hgb": "gradient boosting",
    "lenet5-netcal": "LeNet-5",
    "llama-2-7b-hf-1shot": "Llama-2-7B (1-shot)",
    "magika-v3.3": "Magika 3.3",
    "mic23": "network (MIC23)",
    "mistral-7b-v0.1-1shot": "Mistral-7B (1-shot)",
    "mlp": "MLP",
    "mondrian-forest-pycalib": "Mondrian forest",
    "psrcal": "verification system",
    "qwen-7b-1shot": "Qwen-7B (1-shot)",
    "repvgg-a2-ferrer": "RepVGG-A2",
    "resnet110-brier-focalcal": "ResNet-110 (Brier loss)",
    "resnet110-flsd53-focalcal": "ResNet-110 (focal loss)",
    "resnet18-rgb": "ResNet-18",
    "resnet20-akamaster": "ResNet-20 (akamaster)",
    "resnet20-ferrer": "ResNet-20 (Ferrer)",
    "resnet50": "ResNet-50",
    "resnet50-brier-focalcal": "ResNet-50 (Brier loss)",
    "resnet50-psrcal": "ResNet-50",
    "resnet56-akamaster": "ResNet-56",
    "textgenrnn": "textgenrnn",
    "tfidf-logreg": "logistic regression (tf-idf)",
    "tfidf-mlp": "MLP (tf-idf)",
    "vgg16-verifiedcal": "VGG-16",
    "vgg19bn-ferrer": "VGG-19-BN",
    "wav2vec2-pt": "wav2vec 2.0",
    "wrn16-4-netcal": "WRN-16-4",
    "wrn26-10-brier-focalcal": "WRN-26-10 (Brier loss)",
    "xgboost-pycalib": "XGBoost",
    "yi-6b-1shot": "Yi-6B (1-shot)",
}


def dataset_name(dataset: str) -> str:
    """Return the display name of a data set.

    Examples
    --------
    >>> dataset_name("cifar100"), dataset_name("my_data")
    ('CIFAR-100', 'my_data')
    """
    return DATASETS.get(dataset, dataset)


def model_name(model: str) -> str:
    """Return the display name of a model.

    Examples
    --------
    >>> model_name("resnet50"), model_name("org__model"), model_name("my_net-3")
    ('ResNet-50', 'org/model', 'my_net-3')
    """
    return MODELS.get(model, model.replace("__", "/"))


def task_name(task: TaskFile) -> str:
    """Return the names of a task's data set and model; for other file names, the file name."""
    if task.dataset == task.model:
        return task.name
    return f"{dataset_name(task.dataset)}, {model_name(task.model)}"
