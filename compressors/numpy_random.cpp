#include "compressors/numpy_random.h"

#include <locale>
#include <sstream>
#include <stdexcept>

namespace psgd {

std::uint32_t NumpyRandom::next() {
  constexpr std::uint32_t mask = 0x3FFFFFFF;
  constexpr std::uint32_t largest = 999'999'999;
  std::uint32_t value = 0;
  do {
    value = static_cast<std::uint32_t>(engine_()) & mask;
  } while (value > largest);
  return value;
}

std::string NumpyRandom::to_text() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << engine_;
  return text.str();
}

void NumpyRandom::from_text(const std::string& text) {
  std::istringstream source(text);
  source.imbue(std::locale::classic());
  std::mt19937 engine;
  if (!(source >> engine))
    throw std::invalid_argument(
        "the random generator's state must be the text of an MT19937 engine, but is '" +
        text.substr(0, 40) + "...'; the checkpoint is damaged");
  engine_ = engine;
}

}  // namespace psgd
