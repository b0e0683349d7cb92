#include "harness/train/state_file.h"

#include <torch/torch.h>

#include <sstream>

#include "harness/error.h"
#include "harness/train/weights_check.h"

namespace psgd {
namespace {

State empty_state() { return State(c10::StringType::get(), c10::AnyType::get()); }

class Taker final : public StateVisitor {
 public:
  void tensor(const std::string& key, at::Tensor& value) override {
    // A view would take its whole storage along.
    if (value.defined()) add(key, value.detach().cpu().clone(at::MemoryFormat::Contiguous));
  }
  void integer(const std::string& key, std::int64_t& value) override { add(key, value); }
  void text(const std::string& key, std::string& value) override { add(key, value); }
  State& state() { return state_; }

 private:
  void add(const std::string& key, c10::IValue value) {
    if (!state_.insert(key, std::move(value)).second)
      throw std::logic_error("state key '" + key + "' twice");
  }
  State state_ = empty_state();
};

class Restorer final : public StateVisitor {
 public:
  explicit Restorer(const State& state) : state_(state) {}

  void tensor(const std::string& key, at::Tensor& value) override {
    used_.insert(key);
    if (!state_.contains(key)) {
      if (value.defined()) missing(key);
      return;
    }
    const c10::IValue& found = state_.at(key);
    if (!found.isTensor()) mistyped(key, "a tensor");
    const at::Tensor tensor = found.toTensor();
    value = value.defined() ? tensor.to(value.device()) : tensor;
  }
  void integer(const std::string& key, std::int64_t& value) override {
    if (!get(key).isInt()) mistyped(key, "an integer");
    value = get(key).toInt();
  }
  void text(const std::string& key, std::string& value) override {
    if (!get(key).isString()) mistyped(key, "a text");
    value = get(key).toStringRef();
  }
  void check_all_used() const {
    for (const auto& item : state_)
      if (!used_.contains(item.key().toStringRef()))
        throw Error("it holds '" + item.key().toStringRef() + "', which this run does not have");
  }

 private:
  c10::IValue get(const std::string& key) {
    used_.insert(key);
    if (!state_.contains(key)) missing(key);
    return state_.at(key);
  }
  [[noreturn]] static void missing(const std::string& key) {
    throw Error("it lacks '" + key + "', which this run needs");
  }
  [[noreturn]] static void mistyped(const std::string& key, const char* expected) {
    throw Error("its '" + key + "' is not " + expected);
  }
  const State& state_;
  std::set<std::string> used_;
};

}  // namespace

State take_state(const std::function<void(StateVisitor&)>& visit) {
  Taker taker;
  visit(taker);
  return taker.state();
}

void restore_state(const State& state, const std::function<void(StateVisitor&)>& visit) {
  Restorer restorer(state);
  visit(restorer);
  restorer.check_all_used();
}

std::string pack_state(const State& state) {
  const std::vector<char> bytes = torch::pickle_save(state);
  return {bytes.begin(), bytes.end()};
}

State unpack_state(const std::string& bytes) {
  c10::IValue content;
  try {
    content = torch::pickle_load({bytes.begin(), bytes.end()});
  } catch (const c10::Error& error) {
    throw Error("its content cannot be read: " + std::string(error.what_without_backtrace()));
  }
  if (!content.isGenericDict()) throw Error("its content is not a dictionary");
  return content.toGenericDict();
}

std::map<std::string, std::string> fingerprints(const State& state) {
  std::map<std::string, std::string> all;
  for (const auto& item : state) {
    const c10::IValue& value = item.value();
    std::ostringstream text;
    if (value.isTensor()) {
      const at::Tensor tensor = value.toTensor();
      text << tensor.scalar_type() << tensor.sizes() << std::hex << hash_bits({tensor});
    } else {
      text << value;
    }
    all[item.key().toStringRef()] = text.str();
  }
  return all;
}

State part_of_state(const State& state, const std::set<std::string>& keys, bool among) {
  State selected = empty_state();
  for (const auto& item : state)
    if (keys.contains(item.key().toStringRef()) == among) selected.insert(item.key(), item.value());
  return selected;
}

}  // namespace psgd
