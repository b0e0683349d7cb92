#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "compressors/scheme.h"

namespace psgd {

/// State as a dictionary from key to tensor (contiguous, on the CPU), integer or text.
using State = c10::impl::GenericDict;

State take_state(const std::function<void(StateVisitor&)>& visit);

/// Gives back what take_state() took. Throws Error where the keys are not exactly those that
/// `visit` asks for (naming the first), or a value is of another kind.
void restore_state(const State& state, const std::function<void(StateVisitor&)>& visit);

/// State as bytes: a pickled dictionary, which Python reads with torch.load.
std::string pack_state(const State& state);

/// Throws Error for what pack_state() did not make.
State unpack_state(const std::string& bytes);

/// For each key a text that is the same for the same value: type, shape and a 64-bit hash of the
/// bits.
std::map<std::string, std::string> fingerprints(const State& state);

/// The items whose key is among `keys`, or those whose key is not.
State part_of_state(const State& state, const std::set<std::string>& keys, bool among);

/// Shows keys with a prefix.
class PrefixedVisitor final : public StateVisitor {
 public:
  PrefixedVisitor(StateVisitor& inner, std::string prefix)
      : inner_(inner), prefix_(std::move(prefix)) {}
  void tensor(const std::string& key, at::Tensor& value) override {
    inner_.tensor(prefix_ + key, value);
  }
  void integer(const std::string& key, std::int64_t& value) override {
    inner_.integer(prefix_ + key, value);
  }
  void text(const std::string& key, std::string& value) override {
    inner_.text(prefix_ + key, value);
  }

 private:
  StateVisitor& inner_;
  std::string prefix_;
};

}  // namespace psgd
