#include "harness/train/run_record.h"

#include "compressors/scheme.h"
#include "harness/config/config_reader.h"
#include "harness/records/provenance.h"
#include "harness/records/run_folder.h"
#include "harness/train/worker_table.h"

namespace psgd {

nlohmann::ordered_json describe_machine(const MpiSession& session, MpiCollectives& collectives,
                                        int threads, const std::string& device,
                                        bool oversubscribed) {
  nlohmann::ordered_json machine = machine_info();
  at::Tensor anywhere = at::full({1}, oversubscribed ? 1 : 0, at::kLong);
  collectives.all_reduce(anywhere, Traffic::check);
  machine["oversubscribed"] = anywhere.item<std::int64_t>() > 0;
  machine["transport"] = transport_in_use();
  machine["thread_level"] = session.thread_level();
  machine["wait"] = name(collectives.wait());
  machine["workers"] = gather_places(
      collectives, {host_name(), session.local_worker(), bound_cores(), threads, device});
  return machine;
}

bool is_reduced_size(const Options& options) {
  const Options full;
  return options.base_width < full.base_width || options.model != full.model ||
         options.epochs < full.epochs || options.batch_size < full.batch_size ||
         options.n_workers < full.n_workers || options.batches_per_epoch != 0 ||
         options.train_images != 0 || options.test_images != 0;
}

std::string scheme_label(const Options& options) {
  return SchemeRegistry::instance()
      .find(implementation_from(options.implementation), options.scheme)
      .label(options.scheme_options);
}

nlohmann::ordered_json scheme_rank(const Options& options) {
  if (options.scheme == "full-precision") return 0;
  const auto rank = options.scheme_options.find("rank");
  if (rank != options.scheme_options.end())
    if (const auto* number = std::get_if<std::int64_t>(&rank->second)) return *number;
  return scheme_label(options);
}

nlohmann::ordered_json begin_run_record(const Options& options, const Dataset& dataset,
                                        const std::vector<std::string>& command_line,
                                        const nlohmann::ordered_json& machine) {
  return {{"schema_version", kSchemaVersion},
          {"status", "running"},
          {"message", ""},
          {"name", options.name},
          {"implementation", options.implementation},
          {"scheme", options.scheme},
          {"label", scheme_label(options)},
          {"rank", scheme_rank(options)},
          {"reduced_size", is_reduced_size(options)},
          {"config", to_json(options)},
          {"command_line", command_line},
          {"started", utc_now()},
          {"ended", nullptr},
          {"build", build_info()},
          {"machine", machine},
          {"dataset",
           {{"name", dataset.name},
            {"directory", dataset.directory.string()},
            {"checksum", checksum(dataset)},
            {"train_images", dataset.train.count()},
            {"test_images", dataset.test.count()},
            {"augmented", options.augment}}}};
}

}  // namespace psgd
