"""limbd: a batch worker for big-integer arithmetic on GPUs."""

__version__ = "0.1.0"
