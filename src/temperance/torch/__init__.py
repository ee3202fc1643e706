"""What needs PyTorch (the extra `torch`). Nothing else in the package imports this at start."""
