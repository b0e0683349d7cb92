"""Times PyTorch's own DDP hooks (python3-torch, gloo) on ResNet-18's gradients: pytorch_hooks.py SCHEME [STEPS]

SCHEME: full-precision, fp16, rank-1, rank-2 or rank-4. Two workers, one thread each. The backward pass costs next to
nothing (each parameter's gradient is itself times a constant), so that a step is the reduction, from gradient to
averaged gradient and memory. Prints the median of the slowest worker's step in seconds.
"""

import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

WORKERS = 2
ONE_BUCKET_MIB = 1000


def shapes():
    """The 62 parameters of ResNet-18 for 32x32 images at base width 64."""
    result = [(64, 3, 3, 3), (64,), (64,)]
    inputs = 64
    for stage in range(4):
        outputs = 64 << stage
        for block in range(2):
            result += [
                (outputs, inputs, 3, 3),
                (outputs,),
                (outputs,),
                (outputs, outputs, 3, 3),
                (outputs,),
                (outputs,),
            ]
            if inputs != outputs:
                result += [(outputs, inputs, 1, 1), (outputs,), (outputs,)]
            inputs = outputs
    return result + [(10, 512), (10,)]


class Parameters(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.all = torch.nn.ParameterList(
            torch.nn.Parameter(torch.randn(shape)) for shape in shapes()
        )

    def forward(self, constant):
        return sum((parameter * parameter).sum() for parameter in self.all) * constant


def register(model, scheme):
    if scheme == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif scheme.startswith("rank-"):
        state = powerSGD_hook.PowerSGDState(
            process_group=None, matrix_approximation_rank=int(scheme[5:]), start_powerSGD_iter=2
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def work(worker, scheme, steps, store, results):
    torch.set_num_threads(1)
    torch.manual_seed(worker)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=worker, world_size=WORKERS)
    # One bucket: with several in flight over gloo PyTorch's PowerSGD hook mixes up messages.
    dist._DEFAULT_FIRST_BUCKET_BYTES = ONE_BUCKET_MIB << 20
    model = torch.nn.parallel.DistributedDataParallel(Parameters(), bucket_cap_mb=ONE_BUCKET_MIB)
    register(model, scheme)
    times = []
    for _ in range(steps + 3):
        loss = model(torch.tensor(0.5))
        dist.barrier()
        start = time.perf_counter()
        loss.backward()
        times.append(time.perf_counter() - start)
        model.zero_grad(set_to_none=False)
    results.put(torch.tensor(times[3:]).median().item())
    dist.barrier()


def main():
    scheme = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (scheme, steps, f"{folder}/store", results), nprocs=WORKERS)
    print(max(results.get() for _ in range(WORKERS)))


if __name__ == "__main__":
    main()
