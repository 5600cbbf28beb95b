// SPDX-License-Identifier: MIT
/// FedRolex: a rolling window. [Rolex, Eq. 4; A.4]
#include <fmt/format.h>

#include <algorithm>
#include <subfed/schemes/rolling.hpp>

#include "../failure.hpp"
#include "list.hpp"

namespace trainer::methods {
namespace {

class fedrolex_method : public method {
 public:
  fedrolex_method(const options& settings, const architecture& net) : method(settings, net) {
    if (settings.overlap) return;
    const auto stands = [&](subfed::group_id g) {
      return settings.window_step % net.net[g].extent == 0;
    };
    if (std::all_of(net.stream.begin(), net.stream.end(), stands) &&
        std::all_of(net.inner.begin(), net.inner.end(), stands)) {
      throw failure(fmt::format("With --step {} no window ever moves.", settings.window_step));
    }
  }

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    subfed::rolling window = subfed::rolling::paper();
    window.step = settings().window_step;
    window.window_overlap = settings().overlap;
    window.client_phase = settings().client_phase;
    if (settings().layer_phases && where.extent > 0) {
      const auto own = subfed::seed_policy::per_client().stream(where);  // of client and group
      window.phase =
          static_cast<std::int64_t>(own.bits(0) % static_cast<std::uint64_t>(where.extent));
    }
    return window(where);
  }
};

}  // namespace

made fedrolex(const options& settings, const architecture& described) {
  return std::make_unique<fedrolex_method>(settings, described);
}

}  // namespace trainer::methods
