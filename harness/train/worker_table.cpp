#include "harness/train/worker_table.h"

#include <algorithm>

namespace psgd {

int default_threads(int local_cores, int local_workers) {
  return std::max(1, local_cores / std::max(1, local_workers));
}

bool is_oversubscribed(int local_cores, int local_workers) { return local_workers > local_cores; }

nlohmann::ordered_json gather_places(MpiCollectives& collectives, const WorkerPlace& mine) {
  const nlohmann::ordered_json place = {
      {"worker", collectives.worker()},    {"host", mine.host},
      {"local_worker", mine.local_worker}, {"cores", mine.cores},
      {"threads", mine.threads},           {"device", mine.device}};
  auto table = nlohmann::ordered_json::array();
  for (const auto& text : collectives.all_gather_text(place.dump()))
    table.push_back(nlohmann::ordered_json::parse(text));
  return table;
}

}  // namespace psgd
