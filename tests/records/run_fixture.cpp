#include "tests/records/run_fixture.h"

#include <cmath>

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

double loss_in(const RunFixture& run, int epoch) {
  return epoch >= run.diverges_in_epoch ? NAN : 2.0 / epoch;
}

Json batch_line(const RunFixture& run, int epoch, int batch, int step) {
  std::vector<int> times;
  for (int worker = 0; worker < run.n_workers; ++worker)
    times.push_back(1000 + 10 * worker + step - 1);
  return {{"epoch", epoch},
          {"batch", batch},
          {"step", step},
          {"learning_rate", 0.1},
          {"loss", loss_in(run, epoch)},
          {"bits", run.bits_per_step * step},
          {"timed", step > 1},
          {"microseconds", {{"batch", times}}}};
}

Json metrics_line(const RunFixture& run, int epoch, const char* split, const char* weights) {
  const int correct = 1000 * epoch;
  return {{"epoch", epoch},
          {"step", epoch * run.batches},
          {"split", split},
          {"weights", weights},
          {"loss", loss_in(run, epoch)},
          {"accuracy", correct / 10000.0},
          {"top5", 0.9},
          {"correct", correct},
          {"correct_top5", 9000},
          {"count", 10000},
          {"bits", run.bits_per_step * epoch * run.batches},
          {"time", 1.5 * epoch}};
}

}  // namespace

Json fixture_record(const RunFixture& run) {
  Json record = {{"schema_version", 1},
                 {"status", run.status},
                 {"message", ""},
                 {"name", run.name},
                 {"implementation", run.implementation},
                 {"scheme", run.scheme},
                 {"label", run.label},
                 {"rank", run.rank},
                 {"reduced_size", true},
                 {"config",
                  {{"name", run.name},
                   {"implementation", run.implementation},
                   {"scheme", run.scheme},
                   {"scheme_options", Json::object()},
                   {"n_workers", run.n_workers},
                   {"seed", run.seed},
                   {"model", "resnet18"},
                   {"base_width", 16},
                   {"dataset", "cifar10-jpeg"},
                   {"batch_size", 16},
                   {"epochs", run.epochs},
                   {"decay_epochs", {4, 5}}}},
                 {"started", "2026-12-01T02:00:00Z"},
                 {"ended", run.has_summary ? Json("2026-12-01T03:00:00Z") : Json()},
                 {"machine", {{"host", "node1"}, {"oversubscribed", true}}}};
  if (run.rank.is_number() && run.rank != 0) record["config"]["scheme_options"]["rank"] = run.rank;
  return record;
}

void write_fixture(const RunFixture& run, const std::filesystem::path& path) {
  RunFolder folder = RunFolder::create(path);
  Json record = fixture_record(run);
  int step = 0;
  for (int epoch = 1; epoch <= run.epochs; ++epoch) {
    std::vector<Json> lines;
    for (int batch = 1; batch <= run.batches; ++batch)
      lines.push_back(batch_line(run, epoch, batch, ++step));
    folder.append_batches(lines);
    folder.append_metrics(metrics_line(run, epoch, "train", "last"));
    folder.append_metrics(metrics_line(run, epoch, "test", "last"));
    if (run.implementation == "Paper")
      folder.append_metrics(metrics_line(run, epoch, "test", "runavg"));
  }
  if (run.has_summary) {
    const double mean_batch = (1 + step - 1) / 2.0;  // of b = 1 .. step - 1
    const double least = 1e-6 * (1000 + mean_batch);
    const double most = least + 1e-5 * static_cast<double>(run.n_workers - 1);
    record["batch_time"] = (least + most) / 2;
    record["batches_timed"] = step - 1;
    record["phases"] = {{"batch", {{"min", least}, {"mean", (least + most) / 2}, {"max", most}}}};
    record["totals"] = {{"steps", step}, {"bits", run.bits_per_step * step}};
  }
  folder.write_run(record);
}

}  // namespace psgd
