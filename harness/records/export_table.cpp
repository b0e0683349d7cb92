#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "harness/records/export.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

/// Runs that differ in nothing but seed and name, and so share a row.
struct Group {
  std::vector<const Run*> runs;
};

/// Where a row stands: the notebook's order, full precision, FP16, then ranks, then other schemes.
struct RowOrder {
  std::string implementation;
  double rank;
  std::string label;
  std::string setup;
  auto operator<=>(const RowOrder&) const = default;
};

RowOrder order_of(const Run& run) {
  Json setup = run.config;
  for (const char* key : {"name", "seed", "data_dir"}) setup.erase(key);
  if (setup.contains("scheme_options") && setup["scheme_options"].is_object())
    for (const char* key : {"seed", "random_seed"}) setup["scheme_options"].erase(key);
  const double rank = run.rank == "FP16"     ? 0.5
                      : run.rank.is_number() ? run.rank.get<double>()
                                             : 1e9;
  // "PyTorch DDP" before "Paper", as in the notebook.
  return {run.implementation == "PyTorch DDP" ? "0" : "1" + run.implementation, rank, run.label,
          setup.dump()};
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string time_cell(const Group& group) {
  double sum = 0, least = INFINITY, most = 0;
  int count = 0;
  for (const Run* run : group.runs) {
    if (!run->batch_seconds) continue;
    sum += run->batch_seconds->mean;
    least = std::min(least, run->batch_seconds->min);
    most = std::max(most, run->batch_seconds->max);
    ++count;
  }
  if (count == 0) return "-";
  return formatted("%.1f ms (%.1f..%.1f)", 1e3 * sum / count, 1e3 * least, 1e3 * most);
}

/// The last test of the trained weights; null where there is none or the loss was not finite.
Json last_test(const Run& run) {
  for (auto line = run.metrics.rbegin(); line != run.metrics.rend(); ++line)
    if ((*line)["split"] == "test" && (*line)["weights"] == "last") return *line;
  return {};
}

std::string accuracy_cell(const Group& group) {
  double sum = 0, least = INFINITY, most = -INFINITY;
  int count = 0;
  for (const Run* run : group.runs) {
    const Json test = last_test(*run);
    if (!test.is_object() || !test.value("accuracy", Json()).is_number()) continue;
    if (test.contains("loss") && test["loss"].is_null()) continue;
    const double accuracy = 100 * test["accuracy"].get<double>();
    sum += accuracy;
    least = std::min(least, accuracy);
    most = std::max(most, accuracy);
    ++count;
  }
  if (count == 0) return "-";
  if (count == 1) return formatted("%.2f %%", sum);
  return formatted("%.2f %% (%.2f..%.2f, %d seeds)", sum / count, least, most, count);
}

std::string bits_cell(const Group& group, bool last_step) {
  std::set<std::int64_t> values;
  for (const Run* run : group.runs) {
    if (last_step && run->bits_last_step) values.insert(*run->bits_last_step);
    if (!last_step && run->steps > 0) values.insert(run->bits);
  }
  if (values.empty()) return "-";
  std::string text = std::to_string(*values.rbegin());
  return values.size() == 1 ? text : std::to_string(*values.begin()) + ".." + text;
}

void add_marks_of(const Run& run, std::set<std::string>& marks) {
  const Json& record = run.record;
  if (record.value("reduced_size", Json()) == true) marks.insert("reduced size");
  const Json machine = record.value("machine", Json());
  if (machine.is_object() && machine.value("oversubscribed", Json()) == true)
    marks.insert("oversubscribed");
  const Json dataset = run.config.value("dataset", Json());
  if (dataset.is_string() && dataset != "cifar10") marks.insert(dataset.get<std::string>());
  if (run.status == "diverged") marks.insert("diverged: " + run.name);
  if (run.status == "finished" || run.status == "diverged") return;
  const std::string epoch = run.metrics.empty() ? "0" : run.metrics.back()["epoch"].dump();
  marks.insert("unfinished (" + run.status + " after epoch " + epoch + "): " + run.name);
}

std::string marks_cell(const Group& group) {
  std::set<std::string> marks;
  for (const Run* run : group.runs) add_marks_of(*run, marks);
  std::string text;
  for (const auto& mark : marks) text += (text.empty() ? "" : "; ") + mark;
  return text;
}

/// Workers, batch and width: what tells rows of one scheme apart when several experiments are
/// exported together.
std::string setup_cell(const Run& run) {
  const auto value = [&](const char* key) {
    const Json found = run.config.value(key, Json());
    return found.is_string() ? found.get<std::string>() : found.dump();
  };
  return value("n_workers") + " x " + value("batch_size") + ", " + value("model") + "/" +
         value("base_width") + ", " + value("epochs") + " epochs";
}

using Row = std::vector<std::string>;

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string table(const std::vector<Run>& runs) {
  std::map<RowOrder, Group> groups;
  for (const auto& run : runs) groups[order_of(run)].runs.push_back(&run);
  std::vector<Row> rows = {{"implementation", "scheme", "time per batch (workers)", "test accuracy",
                            "bits per step", "bits in all", "setup", "marks"}};
  for (const auto& [order, group] : groups) {
    const Run& first = *group.runs.front();
    rows.push_back({first.implementation, first.label, time_cell(group), accuracy_cell(group),
                    bits_cell(group, true), bits_cell(group, false), setup_cell(first),
                    marks_cell(group)});
  }
  return aligned(rows);
}

}  // namespace psgd
