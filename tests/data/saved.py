"""Files of every format with given arrays, written by the usual means and not by the package itself."""

import numpy as np
import pandas
import safetensors.numpy
import torch


def save_npz(path, arrays):
    np.savez(path, **arrays)


def save_npz_compressed(path, arrays):
    np.savez_compressed(path, **arrays)


def save_table(path, arrays):
    columns = {}
    for key, array in arrays.items():
        stem = key.removesuffix("s")
        if array.ndim == 2:
            columns |= {f"{stem}_{k}": array[:, k] for k in range(array.shape[1])}
        else:
            columns[stem] = array
    frame = pandas.DataFrame(columns)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def save_lists(path, arrays):
    frame = {key: list(array) if array.ndim == 2 else array for key, array in arrays.items()}
    pandas.DataFrame(frame).to_parquet(path, index=False)


def save_safetensors(path, arrays):
    safetensors.numpy.save_file({key: np.ascontiguousarray(array) for key, array in arrays.items()}, path)


def save_pt(path, arrays):
    torch.save({key: torch.from_numpy(np.array(array)) for key, array in arrays.items()}, path)


def save_old_pt(path, arrays):
    tensors = {key: torch.from_numpy(np.array(array)) for key, array in arrays.items()}
    torch.save(tensors, path, _use_new_zipfile_serialization=False)


# By name: how to save, and the file's suffix.
SAVERS = {
    "npz": (save_npz, ".npz"),
    "npz-compressed": (save_npz_compressed, ".npz"),
    "csv": (save_table, ".csv"),
    "parquet": (save_table, ".parquet"),
    "parquet-lists": (save_lists, ".pq"),
    "safetensors": (save_safetensors, ".safetensors"),
    "pt": (save_pt, ".pt"),
    "pt-old": (save_old_pt, ".pth"),
}
