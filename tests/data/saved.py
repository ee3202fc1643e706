"""Files of every format with given arrays, written by the usual means and not by the package itself."""

import json

import h5py
import numpy as np
import pandas
import pyarrow
import safetensors.numpy
import torch


def save_npz(path, arrays):
    np.savez(path, **arrays)


def save_npz_compressed(path, arrays):
    np.savez_compressed(path, **arrays)


def frame_of(arrays):
    """Return the columns that stand for these arrays in a table."""
    columns = {}
    for key, array in arrays.items():
        stem = key.removesuffix("s")
        if array.ndim == 2:
            columns |= {f"{stem}_{k}": array[:, k] for k in range(array.shape[1])}
        else:
            columns[stem] = array
    return pandas.DataFrame(columns)


def save_table(path, arrays):
    writers = {".csv": "to_csv", ".parquet": "to_parquet", ".xlsx": "to_excel"}
    getattr(frame_of(arrays), writers[path.suffix])(path, index=False)


def save_feather(path, arrays):
    frame_of(arrays).to_feather(path)


def save_stream(path, arrays):
    table = pyarrow.Table.from_pandas(frame_of(arrays))
    with pyarrow.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def save_json_lines(path, arrays):
    path.write_text("".join(json.dumps(record) + "\n" for record in frame_of(arrays).to_dict("records")))


def save_hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            file.create_dataset(key, data=array, compression="gzip", fletcher32=True)


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
    "feather": (save_feather, ".feather"),
    "arrow-stream": (save_stream, ".arrow"),
    "excel": (save_table, ".xlsx"),
    "json-lines": (save_json_lines, ".jsonl"),
    "hdf5": (save_hdf5, ".h5"),
    "safetensors": (save_safetensors, ".safetensors"),
    "pt": (save_pt, ".pt"),
    "pt-old": (save_old_pt, ".pth"),
}
