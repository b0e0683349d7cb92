#!/usr/bin/env python3
"""Stands in for mpirun (and srun) in the tests of the sweep: runs one copy, whatever the number."""

import os
import sys

if sys.argv[1:] == ["--version"]:
    print("mpirun (Open MPI) 4.1.4")
    sys.exit(0)
start = next(i for i, word in enumerate(sys.argv) if word.endswith("fake_bench.py"))
os.execv(sys.argv[start], sys.argv[start:])
