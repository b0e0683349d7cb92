#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "compressors/scheme.h"

namespace psgd {

/// State as bytes: a pickled dictionary from key to tensor, integer or text, which Python reads with torch.load.
std::string pack_state(const std::function<void(StateVisitor&)>& visit);

/// Restores what pack_state() made. Throws Error for what is no such dictionary, and where the keys are not exactly
/// those that `visit` asks for (naming the first).
void unpack_state(const std::string& bytes, const std::function<void(StateVisitor&)>& visit);

/// Shows keys with a prefix.
class PrefixedVisitor final : public StateVisitor {
 public:
  PrefixedVisitor(StateVisitor& inner, std::string prefix) : inner_(inner), prefix_(std::move(prefix)) {}
  void tensor(const std::string& key, at::Tensor& value) override { inner_.tensor(prefix_ + key, value); }
  void integer(const std::string& key, std::int64_t& value) override { inner_.integer(prefix_ + key, value); }
  void text(const std::string& key, std::string& value) override { inner_.text(prefix_ + key, value); }

 private:
  StateVisitor& inner_;
  std::string prefix_;
};

}  // namespace psgd
