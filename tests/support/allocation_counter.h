#pragma once

#include <cstdint>

namespace psgd::test {

/// How often this thread has called operator new since it began. Whatever makes a tensor, a view or
/// a request does. A program that links allocation_counter.cpp has its operator new replaced by one
/// that counts.
std::int64_t allocations();

}  // namespace psgd::test
