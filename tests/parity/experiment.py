"""The one experiment that the program and the references run: its settings, its data and the rules of both
implementations. A rule can be broken on purpose, to show that the comparison would notice.
"""

import dataclasses
import gzip
import pathlib
import re
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
from resnet18_reference import ResNet18  # noqa: E402

# 59 images do not divide by 2 or 3 workers: of 3 workers' 5 batches of 4 the last contains the padding, of 2 workers'
# 30 images the last 10 are left out. Within the 25 steps the warm-up ends and the learning rate is divided. The weight
# decay is large so that its rule shows.
SETTINGS = {
    "model": "resnet18",
    "base_width": 8,
    "dataset": "fashion-mnist",
    "train_images": 59,
    "test_images": 40,
    "augment": False,
    "batch_size": 4,
    "test_batch_size": 10,
    "batches_per_epoch": 5,
    "epochs": 5,
    "momentum": 0.9,
    "weight_decay": 0.005,
    "warmup_epochs": 3,
    "decay_epochs": [4],
    "decay_factor": 10,
    "running_average_reset_epochs": 2,
    "seed": 1,
    "threads": 1,
    "device": "cpu",
    "check_every": 10,
    "save_weights": True,
}

# Learning rates per worker. At the first the network learns, so every rule matters. In float32 it is of no use: a last
# bit that differs soon puts some ReLU on the other side of zero, and the runs part. At the second they stay close.
LEARNING = 0.003
GENTLE = 0.000003

COMPARED_STEP = 20
WORKER_COUNTS = (2, 3)
FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")


@dataclasses.dataclass(frozen=True)
class Case:
    """One run: a scheme, with rank 0 where it has none."""

    scheme: str
    rank: int
    dtype: str
    rate: float

    def label(self):
        return (
            f"rank {self.rank}"
            if self.rank
            else {"fp16": "FP16"}.get(self.scheme, "full precision")
        )

    def settings(self, implementation):
        """For the program, over SETTINGS."""
        layer = {
            "implementation": implementation,
            "scheme": self.scheme,
            "dtype": self.dtype,
            "learning_rate": self.rate,
        }
        if self.rank:
            layer["scheme_options.rank"] = self.rank
        return layer

    def gentle(self):
        """The same in float32 at the rate at which it stays close."""
        return dataclasses.replace(self, dtype="float32", rate=GENTLE)


@dataclasses.dataclass(frozen=True)
class Rules:
    """What the two implementations do differently, and after it what a fault may change."""

    lookahead: float  # the nesterov step goes along g + lookahead * m
    rate_per_batch: bool
    name_prefix: str  # of parameters, as the weight-decay rule sees them

    exempt: str = r".*\.bn\d+.(weight|bias)"
    first_order: int = 0  # seed of the first epoch's order
    last_bit: bool = (
        False  # begin with every weight moved to the next number: how far rounding alone leads
    )
    start_iteration: int = 0  # steps before compression begins
    warm_start: bool = True
    error_feedback: bool = True
    random_seed: int = 0
    # PyTorch DDP
    tested_worker: int = 0  # whose batch-norm statistics tests use
    half_order: tuple = ()  # FP16: the order in which the workers' halves are added; (): gloo's
    cast_before_division: bool = True
    # Paper
    dependent_below: float = 0.1  # see reference_paper.orthogonalise
    q_is_divided: bool = True
    own_statistics: bool = True  # tests use each worker's own batch-norm statistics
    average_is_reset: bool = True


PYTORCH_DDP = Rules(
    lookahead=SETTINGS["momentum"], rate_per_batch=False, name_prefix="module.", start_iteration=2
)
PAPER = Rules(lookahead=1.0, rate_per_batch=True, name_prefix="")


def changed(rules, changes):
    return dataclasses.replace(
        rules,
        **{
            key: tuple(value) if isinstance(value, list) else value
            for key, value in changes.items()
        },
    )


def torch_type(dtype):
    return {"float32": torch.float32, "float64": torch.float64}[dtype]


def make_model(dtype, rules=PYTORCH_DDP):
    torch.manual_seed(SETTINGS["seed"])
    model = ResNet18(SETTINGS["base_width"]).to(torch_type(dtype))
    if rules.last_bit:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.nextafter(parameter, torch.full_like(parameter, torch.inf)))
    return model


def learning_rate(rate, workers, epoch):
    rate *= 1 + (workers - 1) * min(epoch / SETTINGS["warmup_epochs"], 1.0)
    for decay_epoch in SETTINGS["decay_epochs"]:
        if epoch >= decay_epoch:
            rate /= SETTINGS["decay_factor"]
    return rate


def rate_of_batch(rules, rate, workers, epoch, batch):
    part = batch / SETTINGS["batches_per_epoch"] if rules.rate_per_batch else 0
    return learning_rate(rate, workers, epoch + part)


def has_weight_decay(rules, name):
    return re.match(rules.exempt, rules.name_prefix + name) is None


def _read_idx(name, header, count, size):
    with gzip.open(FASHION_MNIST / name) as file:
        file.read(header)
        return np.frombuffer(file.read(count * size), dtype=np.uint8)


def _load(prefix, count, dtype):
    pixels = _read_idx(f"{prefix}-images-idx3-ubyte.gz", 16, count, 28 * 28).reshape(
        count, 1, 28, 28
    )
    labels = _read_idx(f"{prefix}-labels-idx1-ubyte.gz", 8, count, 1)
    padded = np.pad(pixels, ((0, 0), (0, 0), (2, 2), (2, 2)))
    values = torch.from_numpy(padded.copy()).to(torch_type(dtype))
    mean, deviation = (torch.tensor(x, dtype=torch_type(dtype)) for x in (0.2190, 0.3318))
    images = (values / 255 - mean) / deviation
    return images.expand(-1, 3, -1, -1).contiguous(), torch.from_numpy(labels.astype(np.int64))


@dataclasses.dataclass
class Data:
    images: torch.Tensor
    labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor


def load_data(dtype):
    return Data(
        *_load("train", SETTINGS["train_images"], dtype),
        *_load("t10k", SETTINGS["test_images"], dtype),
    )


def share(rules, epoch, worker, workers):
    """The images of one worker in one epoch, in order: as torch.utils.data.DistributedSampler deals them."""
    count = SETTINGS["train_images"]
    generator = torch.Generator()
    generator.manual_seed(rules.first_order + epoch)
    order = torch.randperm(count, generator=generator).tolist()
    order += order[: -count % workers]
    return order[worker::workers]


def batch_of(data, mine, batch):
    size = SETTINGS["batch_size"]
    chosen = mine[batch * size : (batch + 1) * size]
    return data.images[chosen], data.labels[chosen]


class PlainSgd:
    """m = momentum m + g; the step goes along g + lookahead m. Weight decay is added to g."""

    def __init__(self, named_parameters, rules):
        self.items = [
            (parameter, SETTINGS["weight_decay"] if has_weight_decay(rules, name) else 0.0)
            for name, parameter in named_parameters
        ]
        self.momenta = [None] * len(self.items)
        self.lookahead = rules.lookahead

    @torch.no_grad()
    def step(self, gradients, rate):
        for i, ((parameter, decay), gradient) in enumerate(zip(self.items, gradients)):
            g = gradient + decay * parameter
            m = g.clone() if self.momenta[i] is None else SETTINGS["momentum"] * self.momenta[i] + g
            self.momenta[i] = m
            parameter -= rate * (g + self.lookahead * m)


@torch.no_grad()
def count_right(model, images, labels):
    """(right answers, summed loss) with the statistics that the model holds."""
    was_training = model.training
    model.eval()
    right, loss = 0, 0.0
    for start in range(0, len(labels), SETTINGS["test_batch_size"]):
        some = slice(start, start + SETTINGS["test_batch_size"])
        logits = model(images[some])
        right += int((logits.argmax(1) == labels[some]).sum())
        loss += torch.nn.functional.cross_entropy(logits, labels[some], reduction="sum").item()
    model.train(was_training)
    return right, loss


def copy_state(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
