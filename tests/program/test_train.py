"""Training runs from launcher to files: what is written, and that it is the same every time."""

import pathlib
import subprocess
import tempfile
import unittest

from program import EXPERIMENTS, PATIENCE, PROGRAM, command, read_lines, read_run, train


class TrainTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def run_ok(self, workers, name, *layers, **options):
        process = train(workers, self.path / name, *layers, **options)
        self.assertEqual(process.returncode, 0, process.stderr[-3000:])
        return self.path / name

    def test_every_experiment_writes_whole_records(self):
        for number, experiment in enumerate(EXPERIMENTS):
            with self.subTest(experiment):
                folder = self.run_ok(2, f"run-{number}", experiment)
                run = read_run(folder)
                batches = read_lines(folder, "batches.jsonl")
                metrics = read_lines(folder, "metrics.jsonl")
                self.assertEqual(run["status"], "finished")
                self.assertEqual([b["step"] for b in batches], list(range(1, 11)))
                self.assertEqual([b["timed"] for b in batches], [False] + [True] * 9)
                self.assertEqual(run["batches_timed"], 9)
                self.assertEqual(run["totals"]["bits"], batches[-1]["bits"])
                self.assertEqual(len(batches[0]["microseconds"]["batch"]), 2)
                tests = [m for m in metrics if m["split"] == "test" and m["weights"] == "last"]
                self.assertEqual([m["epoch"] for m in tests], [1, 2])
                self.assertTrue(
                    all(m["count"] == 50 and m["accuracy"] == m["correct"] / 50 for m in tests)
                )
                mean = sum(sum(b["microseconds"]["batch"]) for b in batches[1:]) / 2 / 9 * 1e-6
                self.assertAlmostEqual(run["batch_time"], mean, delta=2e-6)
                if experiment["implementation"] == "Paper":
                    self.assertEqual(sum(m["weights"] == "runavg" for m in metrics), 2)

    def test_bits_are_those_of_the_gradients(self):
        elements = 176402  # of ResNet-18 at base width 8
        for experiment, bytes_per_element in (
            (EXPERIMENTS[0], 4),
            (EXPERIMENTS[1], 2),
            (EXPERIMENTS[5], 4),
        ):
            folder = self.run_ok(
                1, experiment["implementation"][:5] + experiment["scheme"], experiment
            )
            run = read_run(folder)
            self.assertEqual(run["model"]["elements"], elements)
            self.assertEqual(run["totals"]["bits"], 10 * 8 * bytes_per_element * elements)

    def test_the_same_seed_twice_gives_the_same_bits(self):
        for experiment in (EXPERIMENTS[3], EXPERIMENTS[7]):
            with self.subTest(experiment):
                folders = [
                    self.run_ok(3, f"{experiment['implementation'][:5]}-{i}", experiment)
                    for i in range(2)
                ]
                self.assertEqual(*(read_run(f)["final"]["weights_hash"] for f in folders))
                self.assertEqual(
                    *([b["loss"] for b in read_lines(f, "batches.jsonl")] for f in folders)
                )
                other = self.run_ok(
                    3, f"{experiment['implementation'][:5]}-other", experiment, {"seed": 2}
                )
                self.assertNotEqual(
                    read_run(other)["final"]["weights_hash"],
                    read_run(folders[0])["final"]["weights_hash"],
                )

    def test_channels_last_changes_no_result_beyond_rounding(self):
        for experiment in (EXPERIMENTS[0], EXPERIMENTS[7]):
            with self.subTest(experiment):
                losses = []
                for channels_last in (False, True):
                    folder = self.run_ok(
                        2,
                        f"{experiment['implementation'][:5]}-{channels_last}",
                        experiment,
                        {"channels_last": channels_last, "dtype": "float64"},
                    )
                    losses.append([b["loss"] for b in read_lines(folder, "batches.jsonl")])
                for plain, permuted in zip(*losses):
                    self.assertAlmostEqual(plain, permuted, delta=1e-9)

    def test_channels_last_raises_no_warning_of_strides(self):
        process = train(2, self.path / "run", EXPERIMENTS[3], {"channels_last": True})
        self.assertEqual(process.returncode, 0, process.stderr[-3000:])
        self.assertNotIn("strides", process.stderr)

    def test_the_learning_rate_changes_as_in_either_original(self):
        steps = {
            "epoch": [0.01] * 5 + [0.02] * 5,
            "batch": [0.01 * (1 + i / 5) for i in range(5)] + [0.02] * 5,
        }
        for experiment, original in ((EXPERIMENTS[0], "epoch"), (EXPERIMENTS[5], "batch")):
            for per, expected in (("original", steps[original]), *steps.items()):
                with self.subTest(experiment=experiment, per=per):
                    folder = self.run_ok(
                        2, f"{original}-{per}", experiment, {"learning_rate_per": per}
                    )
                    for batch, rate in zip(
                        read_lines(folder, "batches.jsonl"), expected, strict=True
                    ):
                        self.assertAlmostEqual(batch["learning_rate"], rate, places=12)

    def test_sixteen_workers_on_any_machine_two_batches(self):
        for experiment in (EXPERIMENTS[3], EXPERIMENTS[7]):
            with self.subTest(experiment):
                folder = self.run_ok(
                    16,
                    experiment["implementation"][:5],
                    experiment,
                    {"epochs": 1, "batches_per_epoch": 2},
                )
                run = read_run(folder)
                self.assertEqual(len(run["machine"]["workers"]), 16)
                cores = {core for worker in run["machine"]["workers"] for core in worker["cores"]}
                self.assertEqual(run["machine"]["oversubscribed"], len(cores) < 16)
                self.assertEqual(len(read_lines(folder, "batches.jsonl")), 2)

    def test_accuracy_is_the_same_count_whatever_the_number_of_workers(self):
        # A step too small to move a weight: the same network is tested, on shares of different sizes.
        layer = {
            "model": "linear",
            "learning_rate": 1e-30,
            "weight_decay": 0,
            "epochs": 1,
            "batches_per_epoch": 1,
            "test_images": 10000,
            "batch_size": 2,
        }
        for experiment in (EXPERIMENTS[0], EXPERIMENTS[5]):
            counts = set()
            for workers in (1, 3, 16):
                folder = self.run_ok(
                    workers, f"{experiment['implementation'][:5]}-{workers}", experiment, layer
                )
                counts |= {
                    (m["correct"], m["correct_top5"], m["count"])
                    for m in read_lines(folder, "metrics.jsonl")
                    if m["split"] == "test"
                }
            with self.subTest(experiment):
                self.assertEqual(len(counts), 1, counts)
                correct, correct_top5, count = counts.pop()
                self.assertEqual(count, 10000)
                self.assertTrue(0 < correct < correct_top5 < count)

    def test_a_run_is_never_overwritten(self):
        folder = self.run_ok(1, "run", EXPERIMENTS[5])
        before = (folder / "run.json").read_bytes()
        process = train(2, folder, EXPERIMENTS[5])
        self.assertEqual(process.returncode, 2)
        self.assertIn("never overwritten", process.stderr)
        self.assertEqual((folder / "run.json").read_bytes(), before)

    def test_another_number_of_workers_than_configured_is_refused(self):
        arguments = command(2, self.path / "run")
        arguments[arguments.index("n_workers=2")] = "n_workers=3"
        process = subprocess.run(
            arguments, capture_output=True, text=True, timeout=60 * PATIENCE, check=False
        )
        self.assertEqual(process.returncode, 2)
        self.assertIn("for 3 workers, but the launcher started 2", process.stderr)
        self.assertEqual(
            process.stderr.count("the launcher started"), 1, "one message, from worker 0"
        )
        self.assertFalse((self.path / "run").exists())

    def test_a_launcher_that_mpi_does_not_see_is_refused(self):
        arguments = [str(PROGRAM), *command(1, self.path / "run")[3:]]
        process = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            timeout=60 * PATIENCE,
            check=False,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.path),
                "SLURM_NTASKS": "4",
                "SLURM_PROCID": "0",
            },
        )
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(
            "the launcher started 4 workers (SLURM_NTASKS), but MPI sees each alone", process.stderr
        )

    def test_over_ucx(self):
        arguments = command(2, self.path / "run", EXPERIMENTS[7])
        process = subprocess.run(
            [arguments[0], "--transport", "ucx", *arguments[1:]],
            capture_output=True,
            text=True,
            timeout=120 * PATIENCE,
            check=False,
        )
        self.assertEqual(process.returncode, 0, process.stderr[-3000:])
        self.assertTrue(read_run(self.path / "run")["machine"]["transport"].startswith("ucx"))


if __name__ == "__main__":
    unittest.main()
