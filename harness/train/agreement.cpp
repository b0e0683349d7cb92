#include "harness/train/agreement.h"

#include <algorithm>

#include "harness/error.h"
#include "harness/mpi/session.h"

namespace psgd {
namespace {

/// "<exit status> <message>", empty when all went well.
std::string outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const UsageError& error) {
    return std::to_string(kUsage) + " " + error.what();
  } catch (const std::invalid_argument& error) {
    return std::to_string(kUsage) + " " + error.what();
  } catch (const c10::Error& error) {
    return std::to_string(kFailed) + " " + error.what_without_backtrace();
  } catch (const std::exception& error) {
    return std::to_string(kFailed) + " " + error.what();
  }
}

}  // namespace

void agree(MpiCollectives& collectives, const std::function<void()>& work) {
  const std::string mine = outcome_of(work);
  at::Tensor failures = at::full({1}, mine.empty() ? 0 : 1, at::kLong);
  collectives.all_reduce(failures, Traffic::check);
  if (failures.item<std::int64_t>() == 0) return;
  // The host is part of what is told only where workers differ: a mistake in the configuration is
  // everyone's.
  const auto all = collectives.all_gather_text(mine.empty() ? mine : mine + "\n" + host_name());
  const auto first =
      std::find_if(all.begin(), all.end(), [](const auto& text) { return !text.empty(); });
  const auto line_end = first->rfind('\n');
  const auto space = first->find(' ');
  const int status = std::stoi(first->substr(0, space));
  std::string message = first->substr(space + 1, line_end - space - 1);
  const bool everywhere = failures.item<std::int64_t>() == collectives.size() || status == kUsage;
  if (!everywhere)
    message = "worker " + std::to_string(first - all.begin()) + " on " +
              first->substr(line_end + 1) + ": " + message;
  throw AgreedError(message, status, everywhere);
}

}  // namespace psgd
