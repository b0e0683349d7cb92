#include "compressors/phase_clock.h"

namespace psgd {

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::batch: return "batch";
    case Phase::data: return "data";
    case Phase::buffers: return "buffers";
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::wait: return "wait";
    case Phase::reduce: return "reduce";
    case Phase::encode: return "encode";
    case Phase::orthogonalise: return "orthogonalise";
    case Phase::collective_gradients: return "collective_gradients";
    case Phase::collective_p: return "collective_p";
    case Phase::collective_q: return "collective_q";
    case Phase::collective_vectors: return "collective_vectors";
    case Phase::decode: return "decode";
    case Phase::step: return "step";
    case Phase::running_average: return "running_average";
    case Phase::count_: break;
  }
  return "?";
}

}  // namespace psgd
