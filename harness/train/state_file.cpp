#include "harness/train/state_file.h"

#include <torch/torch.h>

#include <set>

#include "harness/error.h"

namespace psgd {
namespace {

class Packer final : public StateVisitor {
 public:
  void tensor(const std::string& key, at::Tensor& value) override {
    // A view would take its whole storage along.
    if (value.defined()) add(key, value.detach().cpu().clone(at::MemoryFormat::Contiguous));
  }
  void integer(const std::string& key, std::int64_t& value) override { add(key, value); }
  void text(const std::string& key, std::string& value) override { add(key, value); }
  c10::impl::GenericDict& dictionary() { return dictionary_; }

 private:
  void add(const std::string& key, c10::IValue value) {
    if (!dictionary_.insert(key, std::move(value)).second) throw std::logic_error("state key '" + key + "' twice");
  }
  c10::impl::GenericDict dictionary_{c10::StringType::get(), c10::AnyType::get()};
};

class Unpacker final : public StateVisitor {
 public:
  explicit Unpacker(const c10::impl::GenericDict& dictionary) : dictionary_(dictionary) {}

  void tensor(const std::string& key, at::Tensor& value) override {
    used_.insert(key);
    if (!dictionary_.contains(key)) {
      if (value.defined()) missing(key);
      return;
    }
    const c10::IValue& found = dictionary_.at(key);
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
    for (const auto& item : dictionary_)
      if (!used_.contains(item.key().toStringRef()))
        throw Error("it holds '" + item.key().toStringRef() + "', which this run does not have");
  }

 private:
  c10::IValue get(const std::string& key) {
    used_.insert(key);
    if (!dictionary_.contains(key)) missing(key);
    return dictionary_.at(key);
  }
  [[noreturn]] static void missing(const std::string& key) {
    throw Error("it lacks '" + key + "', which this run needs");
  }
  [[noreturn]] static void mistyped(const std::string& key, const char* expected) {
    throw Error("its '" + key + "' is not " + expected);
  }
  const c10::impl::GenericDict& dictionary_;
  std::set<std::string> used_;
};

}  // namespace

std::string pack_state(const std::function<void(StateVisitor&)>& visit) {
  Packer packer;
  visit(packer);
  const std::vector<char> bytes = torch::pickle_save(packer.dictionary());
  return {bytes.begin(), bytes.end()};
}

void unpack_state(const std::string& bytes, const std::function<void(StateVisitor&)>& visit) {
  c10::IValue content;
  try {
    content = torch::pickle_load({bytes.begin(), bytes.end()});
  } catch (const c10::Error& error) {
    throw Error("its content cannot be read: " + std::string(error.what_without_backtrace()));
  }
  if (!content.isGenericDict()) throw Error("its content is not a dictionary");
  const auto dictionary = content.toGenericDict();
  Unpacker unpacker(dictionary);
  visit(unpacker);
  unpacker.check_all_used();
}

}  // namespace psgd
