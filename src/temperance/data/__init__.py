"""Where logits come from: a simulator whose true probabilities are known."""

from temperance.data.simulate import SimulatedTask, simulate

__all__ = ["SimulatedTask", "simulate"]
