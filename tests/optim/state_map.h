#pragma once

#include <map>
#include <string>

#include "compressors/scheme.h"

namespace psgd {

/// State in memory: saves what it is shown, or, once `loading`, gives it back.
class StateMap : public StateVisitor {
 public:
  void tensor(const std::string& key, at::Tensor& value) override {
    if (loading)
      value = tensors.at(key);
    else
      tensors[key] = value.clone();
  }
  void integer(const std::string& key, std::int64_t& value) override {
    if (loading)
      value = integers.at(key);
    else
      integers[key] = value;
  }
  void text(const std::string&, std::string&) override {}

  bool loading = false;
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::int64_t> integers;
};

}  // namespace psgd
