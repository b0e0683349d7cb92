#include "tests/support/allocation_counter.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
thread_local std::int64_t calls = 0;

void* counted_or_null(std::size_t size, std::size_t alignment) noexcept {
  ++calls;
  size = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, size == 0 ? alignment : size);
}

void* counted(std::size_t size, std::size_t alignment) {
  if (void* const memory = counted_or_null(size, alignment)) return memory;
  throw std::bad_alloc();
}
}  // namespace

// All the scalar forms, since the array forms call them and a sanitizer brings its own of each that
// is left out. None is inlined: GCC would see aligned_alloc() and free() at the two ends of a
// pointer's life, and complain.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return counted(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted_or_null(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  return counted_or_null(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace psgd::test {

std::int64_t allocations() { return calls; }

}  // namespace psgd::test
