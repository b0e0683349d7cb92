"""The paper's training rules and its rank-r reducer restated plainly: one process plays all workers.

Slow and obvious on purpose: matrices as they are written in the paper (Vogels, Karimireddy, Jaggi 2019,
algorithms 1 and 2), sums over the workers in their order.
"""

import copy

import numpy as np
import torch

import experiment
from experiment import SETTINGS


def project(column, earlier):
    for i in range(earlier.shape[1]):
        one = earlier[:, i : i + 1]
        column -= one * (one * column).sum()


def orthogonalise(matrix, dependent_below):
    """Gram-Schmidt, a column at a time, 1e-8 added to each norm; in place.

    The paper's code does no more (dependent_below = 0). The program states one difference: a column of which less
    than a tenth is left is projected again, and is then divided by its norm as it is.
    """
    for i in range(matrix.shape[1]):
        column, earlier = matrix[:, i : i + 1], matrix[:, :i]
        before = column.norm()
        project(column, earlier)
        if column.norm() < dependent_below * before:
            project(column, earlier)
            column /= column.norm()
        else:
            column /= column.norm() + 1e-8


class ExactReducer:
    def reduce(self, gradients):
        return [sum(of_all) / len(of_all) for of_all in zip(*gradients)]


class RankReducer:
    def __init__(self, rank, rules):
        self.rank = rank
        self.rules = rules
        self.random = np.random.RandomState(rules.random_seed)
        self.queries = {}
        self.memories = None
        self.steps = 0

    def reduce(self, gradients):
        """gradients[worker][tensor] -> averages[tensor]. Keeps each worker's error memory."""
        self.steps += 1
        if self.steps <= self.rules.start_iteration:
            return ExactReducer().reduce(gradients)
        if self.memories is None:
            self.memories = [[torch.zeros_like(g) for g in mine] for mine in gradients]
        averages = []
        for i, of_all in enumerate(zip(*gradients)):
            if of_all[0].dim() < 2:
                averages.append(sum(of_all) / len(of_all))
                continue
            inputs = [(g + mine[i]).view(len(g), -1) for g, mine in zip(of_all, self.memories)]
            output = self.compress(i, inputs)
            averages.append(output.view_as(of_all[0]))
            if self.rules.error_feedback:
                for mine, m in zip(self.memories, inputs):
                    mine[i] = (m - output).view_as(of_all[0])
        return averages

    def compress(self, i, inputs):
        q = self.query(i, inputs[0])
        p = sum(m @ q for m in inputs)
        orthogonalise(p, self.rules.dependent_below)
        q = sum(m.t() @ p for m in inputs)
        if self.rules.q_is_divided:
            q /= len(inputs)
        if self.rules.warm_start:
            self.queries[i] = q
        return p @ q.t()

    def query(self, i, like):
        if i in self.queries:
            return self.queries[i].clone()
        rows, columns = like.shape
        generator = torch.Generator()
        generator.manual_seed(int(self.random.randint(1_000_000_000)))
        return torch.randn(
            columns, min(rows, columns, self.rank), generator=generator, dtype=like.dtype
        )


class RunningAverage:
    """The mean, since the last reset, of the weights and of one worker's batch-norm statistics."""

    def __init__(self, model):
        self.model = model
        self.reset()

    def reset(self):
        self.count, self.mean = 0, {}

    def update(self):
        self.count += 1
        for name, value in self.model.state_dict().items():
            if value.is_floating_point():
                mean = self.mean.setdefault(name, torch.zeros_like(value))
                mean += (value - mean) / self.count

    def averaged_model(self):
        averaged = copy.deepcopy(self.model)
        averaged.load_state_dict({**self.model.state_dict(), **self.mean})
        return averaged


def share_weights(model, workers):
    """A model for each worker: one set of weights, own batch-norm statistics."""
    models = [model, *(copy.deepcopy(model) for _ in range(workers - 1))]
    for other in models[1:]:
        for ours, first in zip(other.parameters(), model.parameters()):
            ours.data = first.data
    return models


def test_all(rules, models, data, weights):
    """Worker w tests images w, w + n, w + 2n, ... with its own statistics."""
    workers = len(models)
    right, loss = 0, 0.0
    for worker in range(workers):
        model = models[worker if rules.own_statistics else 0]
        counted = experiment.count_right(
            model, data.test_images[worker::workers], data.test_labels[worker::workers]
        )
        right, loss = right + counted[0], loss + counted[1]
    return {"weights": weights, "correct": right, "loss": loss / SETTINGS["test_images"]}


def train(workers, case, rules):
    """Returns what reference_ddp.py does for a run."""
    torch.set_num_threads(1)
    data = experiment.load_data(case.dtype)
    model = experiment.make_model(case.dtype, rules)
    initial = experiment.copy_state(model)
    models = share_weights(model, workers)
    reducer = RankReducer(case.rank, rules) if case.rank else ExactReducer()
    optimiser = experiment.PlainSgd(model.named_parameters(), rules)
    averages = [RunningAverage(one) for one in models]
    losses, tests = [], []
    for epoch in range(SETTINGS["epochs"]):
        shares = [experiment.share(rules, epoch, worker, workers) for worker in range(workers)]
        if rules.average_is_reset and epoch % SETTINGS["running_average_reset_epochs"] == 0:
            for average in averages:
                average.reset()
        for batch in range(SETTINGS["batches_per_epoch"]):
            step_losses, gradients = [], []
            for worker, one in enumerate(models):
                images, labels = experiment.batch_of(data, shares[worker], batch)
                loss = torch.nn.functional.cross_entropy(one(images), labels)
                gradients.append(torch.autograd.grad(loss, list(one.parameters())))
                step_losses.append(loss.item())
            losses.append(sum(step_losses) / workers)
            optimiser.step(
                reducer.reduce(gradients),
                experiment.rate_of_batch(rules, case.rate, workers, epoch, batch),
            )
            for average in averages:
                average.update()
        tests.append(test_all(rules, models, data, "last"))
        tests.append(
            test_all(rules, [average.averaged_model() for average in averages], data, "runavg")
        )
    return {
        "initial": initial,
        "weights": experiment.copy_state(model),
        "losses": losses,
        "tests": tests,
    }
