"""PyTorch's own DistributedDataParallel and communication hooks over gloo, on the experiment of experiment.py:

    reference_ddp.py WORKERS RUNS OUTPUT

RUNS is a JSON object: name -> [the members of a Case, what to change in PYTORCH_DDP]. OUTPUT (torch.load) holds for
each name: "initial" and "weights" (state dicts of worker 0), "losses" (mean over the workers, per step) and "tests"
(per epoch: which weights, right answers, mean loss).
"""

import json
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

import experiment
from experiment import PYTORCH_DDP, SETTINGS, Case

ONE_BUCKET = 25 << 20


def ordered_fp16_hook(rules, bucket):
    """fp16_compress_hook, but the halves are added in a given order of the workers, each sum rounded to half."""
    workers = dist.get_world_size()
    gradient = bucket.buffer()
    half = (
        gradient.half().div_(workers) if rules.cast_before_division else (gradient / workers).half()
    )
    halves = [torch.empty_like(half) for _ in range(workers)]
    dist.all_gather(halves, half)
    total = halves[rules.half_order[0]]
    for worker in rules.half_order[1:]:
        total = total + halves[worker]
    future = torch.futures.Future()
    future.set_result(gradient.copy_(total))
    return future


def register_hook(ddp, case, rules):
    if case.scheme == "fp16" and rules.half_order:
        ddp.register_comm_hook(rules, ordered_fp16_hook)
    elif case.scheme == "fp16":
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    elif case.scheme == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            process_group=None,
            matrix_approximation_rank=case.rank,
            start_powerSGD_iter=rules.start_iteration,
            use_error_feedback=rules.error_feedback,
            warm_start=rules.warm_start,
            random_seed=rules.random_seed,
        )
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


class TorchSgd:
    """torch.optim.SGD with nesterov=True, weight decay by the names of DistributedDataParallel's parameters."""

    def __init__(self, named_parameters, rules):
        groups = [
            {
                "params": [p],
                "weight_decay": SETTINGS["weight_decay"] * experiment.has_weight_decay(rules, name),
            }
            for name, p in named_parameters
        ]
        self.sgd = torch.optim.SGD(groups, lr=1.0, momentum=SETTINGS["momentum"], nesterov=True)

    def step(self, _, rate):
        for group in self.sgd.param_groups:
            group["lr"] = rate
        self.sgd.step()


def train(worker, workers, case, rules):
    data = experiment.load_data(case.dtype)
    model = experiment.make_model(case.dtype, rules)
    initial = experiment.copy_state(model)
    # PowerSGD's hook mixes up messages over gloo when two buckets are under way, and in float64 the model is larger
    # than PyTorch's first bucket.
    dist._DEFAULT_FIRST_BUCKET_BYTES = ONE_BUCKET
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=ONE_BUCKET >> 20)
    register_hook(ddp, case, rules)
    optimiser = (TorchSgd if rules.lookahead == SETTINGS["momentum"] else experiment.PlainSgd)(
        model.named_parameters(), rules
    )
    losses, tests = [], []
    for epoch in range(SETTINGS["epochs"]):
        mine = experiment.share(rules, epoch, worker, workers)
        for batch in range(SETTINGS["batches_per_epoch"]):
            images, labels = experiment.batch_of(data, mine, batch)
            model.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(ddp(images), labels)
            loss.backward()
            optimiser.step(
                [p.grad for p in model.parameters()],
                experiment.rate_of_batch(rules, case.rate, workers, epoch, batch),
            )
            losses.append(loss.item())
        tests.append(experiment.count_right(model, data.test_images, data.test_labels))
    sizes = ddp._get_ddp_logging_data().get("rebuilt_bucket_sizes", "")
    assert sizes.isdigit(), f"expected one bucket, found sizes '{sizes}'"
    everyones = [None] * workers
    dist.all_gather_object(everyones, (losses, tests))
    return {
        "initial": initial,
        "weights": experiment.copy_state(model),
        "losses": [sum(step) / workers for step in zip(*(losses for losses, _ in everyones))],
        "tests": [
            {"weights": "last", "correct": right, "loss": loss / SETTINGS["test_images"]}
            for right, loss in everyones[rules.tested_worker][1]
        ],
    }


def work(worker, workers, runs, output, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=worker, world_size=workers)
    results = {}
    for name, (case, changes) in runs.items():
        results[name] = train(
            worker, workers, Case(**case), experiment.changed(PYTORCH_DDP, changes)
        )
        if worker == 0:
            print(f"  PyTorch, {workers} workers: {name}", flush=True)
    if worker == 0:
        torch.save(results, output)
    dist.destroy_process_group()


def loopback():
    names = [name for _, name in socket.if_nameindex()]
    return "lo" if "lo" in names else names[0]


def main():
    workers, runs, output = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["GLOO_SOCKET_IFNAME"] = loopback()
    torch.multiprocessing.spawn(work, (workers, runs, output, f"{output}.store"), nprocs=workers)


if __name__ == "__main__":
    main()
