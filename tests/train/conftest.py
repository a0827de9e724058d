"""One thread each: the models here are too small for more, and spinning threads starve tests that run beside."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # for the runs that tests start as programs

import torch

torch.set_num_threads(1)
