"""scripts/data.sh, with archives and folders made here; and all shell scripts under shellcheck."""

import hashlib
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
FILE_BYTES = 30_730_000
NOWHERE = "http://127.0.0.1:9/cifar-10-binary.tar.gz"  # the discard port: nobody listens


class DataTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.into = self.folder / "into"

    def make_cifar10(self, folder, published=True):
        """Files of the right size with the first bytes of the published ones; the rest is a hole."""
        folder.mkdir(parents=True)
        for name in FILES:
            first = bytes.fromhex("039e9fa5" if name.startswith("test") else "063b2b32")
            with open(folder / name, "wb") as file:
                file.write(first if published else bytes(4))
                file.truncate(FILE_BYTES)
        return folder

    def archive(self, names=None):
        source = self.make_cifar10(self.folder / "cifar-10-batches-bin")
        path = self.folder / "archive.tar.gz"
        with tarfile.open(path, "w:gz", compresslevel=1) as file:
            for name in names or FILES:
                file.add(source / name, f"cifar-10-batches-bin/{name}")
        return path, hashlib.md5(path.read_bytes()).hexdigest()

    def data(self, *words, **environment):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PSGD_")}
        return subprocess.run(
            [str(ROOT / "scripts" / "data.sh"), "--into", str(self.into), *words],
            env={**clean, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )

    def assert_answer(self, result, dataset, folder):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], f"dataset={dataset} data_dir={folder}")

    def assert_refused(self, result, text):
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(text, result.stderr)
        self.assertNotIn("dataset=", result.stdout)
        self.assertEqual(list(self.into.glob("**/*")), [])

    def test_an_existing_folder(self):
        inner = self.make_cifar10(self.folder / "with space" / "cifar-10-batches-bin")
        for folder in (inner, inner.parent):
            self.assert_answer(self.data(str(folder)), "cifar10", inner)
            self.assert_answer(self.data(PSGD_DATA=str(folder)), "cifar10", inner)
        self.assert_answer(self.data(str(inner), PSGD_DATASET="mine"), "mine", inner)

    def test_copies_get_another_name(self):
        folder = self.make_cifar10(self.folder / "copies", published=False)
        result = self.data(str(folder))
        self.assert_answer(result, "cifar10-jpeg", folder)
        self.assertIn("taken for JPEG copies", result.stderr)

    def test_fashion_mnist_as_an_existing_folder(self):
        (self.folder / "train-images-idx3-ubyte.gz").touch()
        self.assert_answer(self.data(str(self.folder)), "fashion-mnist", self.folder)

    def test_a_folder_without_a_data_set(self):
        self.assert_refused(self.data(str(self.folder)), "holds neither CIFAR-10")
        self.assert_refused(self.data(str(self.folder / "nothing")), "no folder")
        cut = self.make_cifar10(self.folder / "cut")
        os.truncate(cut / "data_batch_3.bin", 3073)
        self.assert_refused(self.data(str(cut)), "holds neither CIFAR-10")

    def test_download_once(self):
        path, md5 = self.archive()
        result = self.data(PSGD_CIFAR10_URL=path.as_uri(), PSGD_CIFAR10_MD5=md5)
        self.assert_answer(result, "cifar10", self.into / "cifar-10-batches-bin")
        self.assertEqual([entry.name for entry in self.into.iterdir()], ["cifar-10-batches-bin"])
        path.unlink()
        again = self.data(PSGD_CIFAR10_URL=path.as_uri(), PSGD_CIFAR10_MD5=md5)
        self.assert_answer(again, "cifar10", self.into / "cifar-10-batches-bin")
        self.assertNotIn("Downloading", again.stderr)

    def test_a_wrong_checksum_is_refused(self):
        path, _ = self.archive()
        self.assert_refused(
            self.data(PSGD_CIFAR10_URL=path.as_uri()), "c32a1d4ab5d03f1284b67883e8d87530"
        )

    def test_an_archive_that_lacks_a_file_is_refused(self):
        path, md5 = self.archive(FILES[1:])
        self.assert_refused(
            self.data(PSGD_CIFAR10_URL=path.as_uri(), PSGD_CIFAR10_MD5=md5), "lacks some of"
        )

    def test_the_fallback(self):
        """Installs Debian's package where it is missing, as a user's machine would."""
        result = self.data(PSGD_CIFAR10_URL=NOWHERE)
        self.assert_answer(result, "fashion-mnist", "/usr/share/datasets/fashion-mnist")
        self.assertIn("NOTICE: CIFAR-10 could not be downloaded", result.stderr)
        self.assertEqual(list(self.into.iterdir()), [])


class ScriptsTest(unittest.TestCase):
    def test_shellcheck(self):
        scripts = [str(path) for path in sorted((ROOT / "scripts").glob("*.sh"))] + [
            str(ROOT / ".ci" / "run")
        ]
        result = subprocess.run(
            ["shellcheck", *scripts],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_install_names_what_is_missing_elsewhere(self):
        """On a system without apt-get: a list, and a non-zero status."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "id", "env"):
                os.symlink(
                    subprocess.run(
                        ["which", name], stdout=subprocess.PIPE, text=True, check=True
                    ).stdout.strip(),
                    f"{folder}/{name}",
                )
            result = subprocess.run(
                [str(ROOT / "scripts" / "install.sh"), "build"],
                env={"PATH": folder},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a Debian system", result.stdout)
        self.assertIn("libtorch-dev", result.stdout)


if __name__ == "__main__":
    unittest.main()
