// SPDX-License-Identifier: MIT
#include "peer.hpp"

namespace bench {

std::vector<peer_entry> peers() {
  std::vector<peer_entry> out = {{"plain loop", make_loop}};
#if defined(SUBFED_BENCH_EIGEN)
  out.push_back({"Eigen indexed views", make_eigen});
#endif
#if defined(SUBFED_BENCH_XTENSOR)
  out.push_back({"xtensor keep", make_xtensor});
#endif
#if defined(SUBFED_BENCH_TORCH)
  out.push_back({"LibTorch index ops", make_torch_index});
  out.push_back({"LibTorch windows", make_torch_windows});
  out.push_back({"LibTorch as released", make_torch_released});
#endif
  return out;
}

std::vector<std::string> missing_peers() {
  std::vector<std::string> out;
#if !defined(SUBFED_BENCH_EIGEN)
  out.push_back("Eigen");
#endif
#if !defined(SUBFED_BENCH_XTENSOR)
  out.push_back("xtensor");
#endif
#if !defined(SUBFED_BENCH_TORCH)
  out.push_back("LibTorch");
#endif
  return out;
}

#if !defined(SUBFED_BENCH_TORCH)
void set_torch_threads(int) {}
#endif

}  // namespace bench
