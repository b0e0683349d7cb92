// The two engines over MPI: what they give must be the mean gradient, however it is bucketed and
// sent.
#include <gtest/gtest.h>

#include "harness/config/config_reader.h"
#include "harness/engine/engine.h"
#include "harness/train/trainer_parts.h"
#include "tests/mpi/mpi_main.h"
#include "tests/support/thread_collectives.h"

namespace psgd::test {
namespace {

constexpr std::int64_t kImages = 4;

Options options_for(const std::string& implementation, const std::string& scheme,
                    const std::string& model) {
  Options options;
  options.implementation = implementation;
  options.scheme = scheme;
  options.model = model;
  options.base_width = 8;
  options.dtype = "float64";
  options.n_workers = session().workers();
  validate(options);
  return options;
}

torch::Tensor images_of(int worker, int step) {
  const auto values = values_of(worker + 100 * step, kImages * 3 * 32 * 32, at::kDouble);
  return values.view({kImages, 3, 32, 32});
}

torch::Tensor labels_of(int worker, int step) {
  return at::arange(kImages, at::kLong).mul(3).add(worker + step).remainder(10);
}

struct Built {
  Built(const Options& options, Collectives& used)
      : model(make_model(options, Dataset{}, torch::kCPU)),
        scheme(make_scheme(options)),
        engine(make_engine(options, *model, *scheme, used)) {}
  std::shared_ptr<Model> model;
  std::unique_ptr<Scheme> scheme;
  std::unique_ptr<Engine> engine;
};

std::vector<torch::Tensor> gradients(Model& model) {
  std::vector<torch::Tensor> result;
  for (const auto& parameter : model.parameters()) result.push_back(parameter.grad().clone());
  return result;
}

double largest_difference(const std::vector<torch::Tensor>& a,
                          const std::vector<torch::Tensor>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  return largest;
}

class Engines : public testing::TestWithParam<std::string> {};

TEST_P(Engines, WorkersWithoutCompressionEqualOneOnTheJoinedBatch) {
  const Options options = options_for(GetParam(), "full-precision", "mlp");
  Built built(options, collectives());
  PhaseClock clock;
  for (int step = 0; step < 3; ++step) {
    built.engine->forward_backward(images_of(session().worker(), step),
                                   labels_of(session().worker(), step), clock);
    auto reference = make_model(options, Dataset{}, torch::kCPU);
    std::vector<torch::Tensor> images;
    std::vector<torch::Tensor> labels;
    for (int worker = 0; worker < session().workers(); ++worker) {
      images.push_back(images_of(worker, step));
      labels.push_back(labels_of(worker, step));
    }
    torch::nn::functional::cross_entropy(reference->forward(torch::cat(images)), torch::cat(labels))
        .backward();
    EXPECT_LE(largest_difference(gradients(*built.model), gradients(*reference)), 1e-12)
        << "step " << step;
  }
}

TEST_P(Engines, GiveTheSameTwice) {
  const Options options = options_for(GetParam(), "powersgd", "resnet18");
  std::vector<std::vector<torch::Tensor>> results;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Built built(options, collectives());
    PhaseClock clock;
    for (int step = 0; step < 4; ++step)
      built.engine->forward_backward(images_of(session().worker(), step),
                                     labels_of(session().worker(), step), clock);
    results.push_back(gradients(*built.model));
  }
  EXPECT_EQ(largest_difference(results[0], results[1]), 0);
}

INSTANTIATE_TEST_SUITE_P(Both, Engines, testing::Values("PyTorch DDP", "Paper"),
                         [](const auto& tested) {
                           return tested.param == "Paper" ? std::string("Paper")
                                                          : std::string("Ddp");
                         });

TEST(DdpEngine, ManySmallBucketsInFlightGiveTheSameMeans) {
  Options one = options_for("PyTorch DDP", "full-precision", "resnet18");
  Options many = one;
  many.bucket_mib = many.first_bucket_mib = 0.002;
  Built built_one(one, collectives());
  Built built_many(many, collectives());
  PhaseClock clock;
  for (int step = 0; step < 3; ++step) {
    for (auto* built : {&built_one, &built_many})
      built->engine->forward_backward(images_of(session().worker(), step),
                                      labels_of(session().worker(), step), clock);
    EXPECT_LE(largest_difference(gradients(*built_one.model), gradients(*built_many.model)), 1e-12)
        << "step " << step;
  }
  EXPECT_GT(clock.sum(Phase::collective_gradients), 0);
}

/// Leaves the first layer out on worker 1, so that its gradient does not exist there.
TEST(DdpEngine, AParameterUnusedOnOneWorkerIsNoHang) {
  auto model =
      std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(6, 6), torch::nn::Linear(6, 3));
  for (auto& parameter : model->parameters())
    torch::NoGradGuard{},
        parameter.copy_(values_of(0, parameter.numel(), at::kFloat).view(parameter.sizes()));
  const bool skips = session().worker() == 1;
  const Options options = options_for("PyTorch DDP", "full-precision", "mlp");
  const auto scheme = make_scheme(options);
  EngineParts parts{[&](const torch::Tensor& x) {
                      const torch::Tensor hidden =
                          skips ? x : model->children()[0]->as<torch::nn::Linear>()->forward(x);
                      return model->children()[1]->as<torch::nn::Linear>()->forward(hidden);
                    },
                    model->parameters(), model->buffers(), *scheme, collectives()};
  const auto engine = make_ddp_engine(parts, {.find_unused_parameters = true});
  PhaseClock clock;
  for (int step = 0; step < 3; ++step) {
    engine->forward_backward(values_of(session().worker(), 12, at::kFloat).view({2, 6}),
                             at::zeros({2}, at::kLong), clock);
    for (const auto& parameter : model->parameters()) {
      ASSERT_TRUE(parameter.grad().defined());
      at::Tensor first = parameter.grad().clone();
      collectives().broadcast(first, 0, Traffic::check);
      EXPECT_TRUE(at::equal(first, parameter.grad()));
      EXPECT_GT(parameter.grad().abs().sum().item<float>(), 0);
    }
  }
}

TEST(PaperEngine, AParameterUnusedOnAllWorkersKeepsAZeroGradient) {
  const Options options = options_for("Paper", "powersgd", "mlp");
  auto used = std::make_shared<torch::nn::LinearImpl>(6, 3);
  auto unused = torch::ones({4, 5}, torch::requires_grad());
  const auto scheme = make_scheme(options);
  std::vector<torch::Tensor> parameters = used->parameters();
  parameters.push_back(unused);
  const auto engine = make_paper_engine({[&](const torch::Tensor& x) { return used->forward(x); },
                                         parameters,
                                         {},
                                         *scheme,
                                         collectives()});
  PhaseClock clock;
  for (int step = 0; step < 3; ++step) {
    engine->forward_backward(values_of(session().worker(), 12, at::kFloat).view({2, 6}),
                             at::zeros({2}, at::kLong), clock);
    EXPECT_EQ(unused.grad().abs().sum().item<float>(), 0);
    EXPECT_TRUE(used->weight.grad().isfinite().all().item<bool>());
  }
}

TEST(DdpEngine, BuffersComeFromWorker0BeforeEachForwardPass) {
  Built built(options_for("PyTorch DDP", "full-precision", "resnet18"), collectives());
  PhaseClock clock;
  for (int step = 0; step < 2; ++step)
    built.engine->forward_backward(images_of(session().worker(), step),
                                   labels_of(session().worker(), step), clock);
  built.engine->prepare_test();
  for (const auto& buffer : built.model->buffers()) {
    at::Tensor first = buffer.clone();
    collectives().broadcast(first, 0, Traffic::check);
    EXPECT_TRUE(at::equal(first, buffer));
  }
}

/// Every scheme over MPI gives what it gives among threads of one process, where sums are formed in
/// a plain loop.
TEST(Schemes, OverMpiMatchThreads) {
  const int workers = session().workers();
  const std::vector<std::vector<std::int64_t>> shapes = {{8, 3, 3, 3}, {8},    {16, 72}, {1, 5},
                                                         {5, 1},       {0, 4}, {3},      {}};
  const auto bucket_of = [&](int worker, int step) {
    Bucket bucket;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const at::Tensor empty = at::empty(shapes[i]);
      bucket.gradients.push_back(
          values_of(worker + 10 * step + 100 * static_cast<int>(i), empty.numel(), at::kFloat)
              .view(empty.sizes()));
    }
    return bucket;
  };
  for (const auto& entry : SchemeRegistry::instance().entries()) {
    SCOPED_TRACE(entry.name + " in " + name(entry.implementation));
    const auto options = SchemeRegistry::resolve(entry, {});
    const auto over_mpi = entry.make(options);
    std::vector<Bucket> reference(static_cast<std::size_t>(workers));
    std::vector<Bucket> mine;
    PhaseClock clock;
    for (int step = 0; step < 4; ++step) {
      mine.push_back(bucket_of(session().worker(), step));
      over_mpi->reduce(mine.back(), collectives(), clock);
    }
    std::vector<Bucket> expected;
    run_workers(workers, [&](ThreadCollectives& among_threads) {
      const auto scheme = entry.make(options);
      PhaseClock thread_clock;
      for (int step = 0; step < 4; ++step) {
        Bucket bucket = bucket_of(among_threads.worker(), step);
        scheme->reduce(bucket, among_threads, thread_clock);
        if (among_threads.worker() == session().worker()) expected.push_back(bucket);
      }
    });
    for (int step = 0; step < 4; ++step) {
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (expected[step].gradients[i].numel() == 0) continue;
        EXPECT_LE(
            (mine[step].gradients[i] - expected[step].gradients[i]).abs().max().item<double>(),
            entry.name == "fp16" ? 2e-3 : 2e-5)
            << "step " << step << ", tensor " << i;
      }
    }
  }
}

}  // namespace
}  // namespace psgd::test
