#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compressors/scheme.h"

namespace psgd::test {

/// A scheme's state in memory: take() copies it out, give() puts it into another scheme.
class SavedState {
 public:
  void take(Scheme& scheme) {
    Taker taker(*this);
    scheme.visit_state(taker);
  }
  void give(Scheme& scheme) {
    Giver giver(*this);
    scheme.visit_state(giver);
  }

  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::string> texts;

 private:
  struct Taker : StateVisitor {
    explicit Taker(SavedState& s) : state(s) {}
    void tensor(const std::string& key, at::Tensor& value) override {
      state.tensors[key] = value.clone();
    }
    void integer(const std::string& key, std::int64_t& value) override {
      state.integers[key] = value;
    }
    void text(const std::string& key, std::string& value) override { state.texts[key] = value; }
    SavedState& state;
  };
  struct Giver : StateVisitor {
    explicit Giver(SavedState& s) : state(s) {}
    void tensor(const std::string& key, at::Tensor& value) override {
      value = state.tensors.at(key).clone();
    }
    void integer(const std::string& key, std::int64_t& value) override {
      value = state.integers.at(key);
    }
    void text(const std::string& key, std::string& value) override { value = state.texts.at(key); }
    SavedState& state;
  };
};

}  // namespace psgd::test
