#include "models/model.h"

#include <stdexcept>

namespace psgd {

ModelRegistry& ModelRegistry::instance() {
  static ModelRegistry registry;
  return registry;
}

void ModelRegistry::add(ModelEntry entry) {
  for (const auto& known : entries_)
    if (known.name == entry.name)
      throw std::logic_error("model '" + entry.name + "' is registered twice");
  entries_.push_back(std::move(entry));
}

std::shared_ptr<Model> ModelRegistry::make(const ModelOptions& options) const {
  if (options.base_width < 1)
    throw std::invalid_argument("base_width is " + std::to_string(options.base_width) +
                                ", but must be at least 1");
  if (options.classes < 1)
    throw std::invalid_argument("classes is " + std::to_string(options.classes) +
                                ", but must be at least 1");
  std::string known;
  for (const auto& entry : entries_) {
    if (entry.name == options.name) return entry.make(options);
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw std::invalid_argument("model '" + options.name + "' does not exist; known: " + known);
}

}  // namespace psgd
