"""Several hosts, pretended on this one: each has a name and process ids of its own, sees no process of another, and
reaches it by TCP only."""

import os
import pathlib
import subprocess
import time
import unittest

from jobs import FAILED, FINISHED, JobTest, faulty_command, strict_json, whole_lines
from program import EXPERIMENTS, PATIENCE, command, read_run

SSH = str(pathlib.Path(__file__).resolve().parent / "pretended_ssh.sh")
LIMIT_SECONDS = 30 * PATIENCE


def run_on(hosts, arguments, fault=""):
    """`hosts`: as for mpirun's --host, e.g. "alpha:2,beta:2"."""
    environment = {
        **os.environ,
        "PSGD_FAULT": fault,
        "PSGD_MPIRUN_ARGS": f"--host {hosts} --bind-to none",
        "OMPI_MCA_mpi_yield_when_idle": "1",  # they share cores, and do not know it
        # Open MPI 4, and Open MPI 5 with its launcher PRRTE, which needs a network beside the loopback one.
        "OMPI_MCA_plm_rsh_agent": SSH,
        "PRTE_MCA_plm_ssh_agent": SSH,
        "OMPI_MCA_oob_tcp_if_include": "lo",
        "OMPI_MCA_btl_tcp_if_include": "lo",
    }
    return subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=300 * PATIENCE,
        check=False,
        env=environment,
    )


class HostsTest(JobTest):
    def test_the_same_result_on_one_host_two_and_four(self):
        """Workers that wait asleep meet in their host's memory, and hosts over MPI."""
        for experiment in (EXPERIMENTS[3], EXPERIMENTS[7]):
            losses = []
            for hosts in ("alpha:4", "alpha:2,beta:2", "alpha:1,beta:1,gamma:1,delta:1"):
                folder = self.path / f"{experiment['implementation']}-{hosts}"
                process = run_on(
                    hosts, command(4, folder, experiment, {"wait": "sleep", "dtype": "float64"})
                )
                self.assert_status(process, FINISHED)
                names = [
                    name
                    for part in hosts.split(",")
                    for name, count in [part.split(":")]
                    for _ in range(int(count))
                ]
                workers = read_run(folder)["machine"]["workers"]
                self.assertEqual([worker["host"] for worker in workers], names)
                self.assertEqual(
                    [worker["local_worker"] for worker in workers],
                    [names[:i].count(name) for i, name in enumerate(names)],
                )
                losses.append([line["loss"] for line in whole_lines(folder / "metrics.jsonl")])
                self.assertEqual(len(losses[-1]), len(losses[0]))
                for found, expected in zip(losses[-1], losses[0]):
                    self.assertAlmostEqual(found / expected, 1, delta=1e-9, msg=hosts)

    def fails(self, hosts, workers, fault):
        folder = self.path / f"{hosts} {fault}"
        start = time.monotonic()
        process = run_on(
            hosts,
            faulty_command(workers, folder, {"scheme": "faulty", "test_batch_size": 5}),
            fault,
        )
        self.assertLess(time.monotonic() - start, LIMIT_SECONDS)
        self.assertNotEqual(process.returncode, 0)
        whole_lines(folder / "metrics.jsonl")
        lines = whole_lines(folder / "batches.jsonl")
        self.assertEqual([line["step"] for line in lines], list(range(1, len(lines) + 1)))
        record = strict_json((folder / "run.json").read_text())
        self.assertEqual(record["status"], "failed")
        self.assertIsNotNone(record["ended"])
        return process, record["message"]

    def test_a_worker_throws(self):
        for hosts in ("alpha:2,beta:1", "alpha:1,beta:1,gamma:1"):
            with self.subTest(hosts):
                process, _ = self.fails(hosts, 3, "forward throw 2 3")
                self.assert_status(process, FAILED)
                host = hosts.split(",")[-1].split(":")[0]
                self.assert_one_message(
                    process,
                    f"worker 2 on {host}, in phase 'forward and backward'",
                    "the fault that was asked for",
                )

    def test_a_worker_is_killed_that_is_not_alone_on_its_host(self):
        for fault, place, phase in (
            ("forward kill 3 3", "worker 3 on beta", "forward and backward"),
            ("test kill 0 1", "worker 0 on alpha", "test"),
        ):
            with self.subTest(fault):
                process, message = self.fails("alpha:2,beta:2", 4, fault)
                self.assert_one_message(process, f"{place}, in phase '{phase}'", "is gone")
                self.assertIn(place, message)

    def test_a_worker_is_killed_that_is_alone_on_its_host(self):
        """Only the launcher sees it end, and says so; run.json tells by another worker's hand that it ended the job."""
        for worker, host in ((0, "alpha"), (2, "gamma")):
            with self.subTest(host):
                process, message = self.fails(
                    "alpha:1,beta:1,gamma:1", 3, f"forward kill {worker} 3"
                )
                self.assertIn(
                    "ended by the launcher (SIGTERM), in phase 'forward and backward'", message
                )
                self.assertRegex(
                    process.stderr + process.stdout,
                    f"rank {worker} .*on node {host} exited on signal 9",
                )


if __name__ == "__main__":
    unittest.main()
