"""scripts/launch.sh with the mpirun of this machine: status, number of workers, signals, options."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAUNCH = str(ROOT / "scripts" / "launch.sh")


def launch(*words, **environment):
    return subprocess.run(
        [LAUNCH, *words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
        check=False,
    )


class LaunchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def fake_mpirun(self, version):
        path = self.folder / "mpirun"
        path.write_text(f"#!/bin/sh\necho 'mpirun (Open MPI) {version}'\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def test_starts_all_workers_whatever_the_number_of_cores(self):
        for n in (1, 2, 3, 16):
            with self.subTest(n=n):
                result = launch(
                    str(n), "sh", "-c", f"touch {self.folder}/{n}-$OMPI_COMM_WORLD_RANK"
                )
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertEqual(len(list(self.folder.glob(f"{n}-*"))), n)

    def test_arguments_arrive_as_they_are(self):
        result = launch("1", "printf", "[%s]", "implementation=PyTorch DDP", "a'b\"$c", "")
        self.assertIn("[implementation=PyTorch DDP][a'b\"$c][]", result.stdout)

    def test_the_workers_status_is_the_status(self):
        for status in (0, 1, 3, 75):
            self.assertEqual(launch("2", "sh", "-c", f"exit {status}").returncode, status)

    def test_signals_reach_the_workers_as_sigusr1(self):
        worker = (
            f"trap 'sleep 2; touch {self.folder}/$n-stopped; exit 75' USR1; n=$OMPI_COMM_WORLD_RANK; "
            f"touch {self.folder}/$n-ready; for i in $(seq 300); do sleep 0.1; done"
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(signal=number):
                for old in self.folder.iterdir():
                    old.unlink()
                process = subprocess.Popen(
                    [LAUNCH, "3", "bash", "-c", worker],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                for _ in range(200):
                    if len(list(self.folder.glob("*-ready"))) == 3:
                        break
                    time.sleep(0.1)
                os.killpg(process.pid, number)  # as a terminal does
                self.assertEqual(process.wait(timeout=40), 75)
                # mpirun ends the others as soon as one has left with a status other than 0.
                self.assertGreaterEqual(len(list(self.folder.glob("*-stopped"))), 1)

    def test_ucx(self):
        ucx = "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any"
        self.assertIn(ucx, launch("--dry-run", "--transport", "ucx", "2", "program").stdout)
        self.assertIn(ucx, launch("--dry-run", "2", "program", PSGD_TRANSPORT="ucx").stdout)
        self.assertNotIn("pml", launch("--dry-run", "2", "program").stdout)

    def test_open_mpi_5(self):
        text = launch("--dry-run", "999", "program", PSGD_MPIRUN=self.fake_mpirun("5.0.3")).stdout
        self.assertIn("-n 999 --map-by slot:OVERSUBSCRIBE --bind-to none", text)
        text = launch("--dry-run", "999", "program", PSGD_MPIRUN=self.fake_mpirun("4.1.4")).stdout
        self.assertIn("-n 999 --oversubscribe --bind-to none", text)

    def test_the_users_placement_is_left_alone(self):
        text = launch(
            "--dry-run", "999", "program", PSGD_MPIRUN_ARGS="--hostfile hosts --mca a b"
        ).stdout
        self.assertIn("-n 999 -x GLIBC_TUNABLES --hostfile hosts --mca a b program", text)
        text = launch("--dry-run", "999", "program", SLURM_JOB_ID="1").stdout
        self.assertIn("-n 999 -x GLIBC_TUNABLES program", text)

    def test_huge_pages_unless_the_user_has_tunables(self):
        report = "echo tunables $GLIBC_TUNABLES"
        self.assertIn(
            "tunables glibc.malloc.hugetlb=1",
            launch("2", "sh", "-c", report, GLIBC_TUNABLES="").stdout,
        )
        mine = launch("2", "sh", "-c", report, GLIBC_TUNABLES="glibc.malloc.tcache_count=7").stdout
        self.assertIn("tunables glibc.malloc.tcache_count=7\n", mine)

    def test_bad_usage(self):
        for words, text in [
            ((), "usage"),
            (("2",), "usage"),
            (("0", "true"), "positive integer, found '0'"),
            (("two", "true"), "found 'two'"),
            (("-x", "2", "true"), "unknown option '-x'"),
            (("--transport", "tcp", "2", "true"), "found 'tcp'"),
        ]:
            with self.subTest(words=words):
                result = launch(*words)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertIn(text, result.stdout)
        self.assertIn("not found", launch("2", "true", PSGD_MPIRUN="/nowhere/mpirun").stdout)
        other = self.folder / "other"
        other.write_text("#!/bin/sh\necho HYDRA build details\n", encoding="utf-8")
        other.chmod(0o755)
        self.assertIn("not Open MPI's", launch("2", "true", PSGD_MPIRUN=str(other)).stdout)


if __name__ == "__main__":
    unittest.main()
