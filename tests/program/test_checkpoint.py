"""What a checkpoint holds, read as a user would: with torch.load. Needs a Python that has PyTorch."""

import operator
import unittest

import torch
from jobs import INTERRUPTED, JobTest, faulty_command, run
from program import EXPERIMENTS

# BN statistics, their running average, error memory: what workers may hold for themselves.
OWN = ("model.", "running_average.", "scheme.")


class CheckpointTest(JobTest):
    def test_what_all_workers_hold_is_there_once(self):
        for number in (0, 3, 5, 7):
            with self.subTest(EXPERIMENTS[number]):
                folder = self.path / str(number)
                layer = {"epochs": 2, "batches_per_epoch": 10, **EXPERIMENTS[number]}
                self.assert_status(
                    run(faulty_command(3, folder, layer), "forward stop 0 4"), INTERRUPTED
                )
                self.check(next((folder / "checkpoint").iterdir()))

    def check(self, checkpoint):
        shared = torch.load(checkpoint / "shared.pt")
        states = [torch.load(checkpoint / f"worker-{worker}.pt") for worker in range(3)]
        for key in ("trainer.step", "model.inner.linear.weight", "momentum.inner.linear.weight"):
            self.assertTrue(key in shared, key)
        for state in states:
            self.assertEqual(set(state), set(states[0]))
            self.assertFalse(set(state) & set(shared))
        for key, value in states[0].items():
            same = torch.equal if isinstance(value, torch.Tensor) else operator.eq
            self.assertFalse(
                all(same(value, state[key]) for state in states[1:]),
                f"{key} is the same everywhere",
            )
            if isinstance(value, torch.Tensor):
                self.assertTrue(key.startswith(OWN), key)


if __name__ == "__main__":
    unittest.main()
