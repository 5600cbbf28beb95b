// SPDX-License-Identifier: MIT
/// Simple Ensemble Averaging in both forms, and the factors that keep a narrow model's activations
/// as large as the whole one's.
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/detail/written_tensors.hpp>
#include <subfed/philox.hpp>
#include <subfed/scalar.hpp>
#include <subfed/scheme.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// l_s / l_c: the factor of a client for the values of a group of which it holds l_c of l_s nodes.
/// [Cheng, Alg. 1]
///
/// Throws  error when it holds none.
inline double width_scale(const submodel& sub, group_id group) {
  const std::int64_t held = sub.extent(group);
  if (held == 0) {
    detail::fail("subfed: width_scale: no node of group '" + sub.parent()[group].name +
                 "' is held");
  }
  return static_cast<double>(sub.parent()[group].extent) / static_cast<double>(held);
}

/// 1 / beta: HeteroFL's scaler after each convolution in training, and FedRolex's. It differs from
/// width_scale() where beta K is rounded. [HeteroFL]
inline double scaler(const capacity& beta) { return 1 / beta.value(); }

/// Which of R members a client trains. [Cheng, Alg. 2, Sec. 3 and 4.1]
struct ensemble_members {
  std::int64_t count = 1;  ///< R
  enum class assignment {
    by_number,   ///< client mod R, for the whole run: disjoint sets of clients (Alg. 2)
    per_client,  ///< drawn uniformly for each client, for the whole run
    per_round    ///< drawn uniformly for each client and round
  };
  assignment by = assignment::by_number;

  /// Throws  error when R < 1.
  std::int64_t of(std::uint64_t seed, std::uint64_t round, std::uint64_t client) const {
    if (count < 1) {
      detail::fail("subfed: ensemble: " + std::to_string(count) + " members, expected at least 1");
    }
    const auto members = static_cast<std::uint64_t>(count);
    if (by == assignment::by_number) return static_cast<std::int64_t>(client % members);
    const std::uint64_t drawn_in = by == assignment::per_client ? 0 : round;
    random_stream stream(seed, drawn_in, client, "subfed ensemble_members");
    return static_cast<std::int64_t>(stream.below(members));
  }
};

/// The nodes of a client's member: S = {r K/R .. (r+1) K/R - 1}, r = members.of(..): R models inside
/// one. [Cheng, Sec. 3] The request's capacity does not matter; the scheme simple_ensemble{} takes R
/// from it, and client mod R.
struct member_nodes {
  ensemble_members members;

  /// Throws  error when R does not divide K; it names the group.
  index_set operator()(const draw_request& where) const {
    const std::int64_t r = members.of(where.seed, where.round, where.client);
    if (where.extent % members.count != 0) {
      detail::fail("subfed: ensemble: group '" + std::string(where.group) + "' has " +
                   std::to_string(where.extent) + " nodes, which " + std::to_string(members.count) +
                   " members do not divide");
    }
    const std::int64_t kept = where.extent / members.count;
    return index_set::window(where.extent, r * kept, kept);
  }
};

/// Sets to 0 what none of the submodels holds: weights between members, which join them from
/// the second hidden layer on. The paper leaves them random (Remark in Sec. 4). With them at 0 the
/// server model is the sum of its members. Only parameters are set: a variance of 0 would lead to a
/// division by 0.
///
/// Returns  how many elements were set.
/// Throws   error for a submodel of another model, a wrong number or shape of tensors, or ones that
///          overlap in memory; nothing has been written then.
template <averageable T>
std::int64_t clear_unheld(const model& net, std::span<const submodel> members,
                          const tensor_views<T>& globals) {
  detail::check_all_globals("clear_unheld", "global", net, globals);
  detail::check_parents("clear_unheld", net, members);
  detail::written_tensors memory("clear_unheld");
  memory.writes("global", net, globals);
  memory.check_apart();
  const held_elements held(net, members);
  std::int64_t cleared = 0;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) continue;
    std::int64_t i = 0;
    detail::for_each_offset(globals[t], [&](std::int64_t o) {
      if (held.test(tensor_id(t), i++)) return;
      globals[t].data_handle()[o] = scalar_traits<T>::store(0);
      ++cleared;
    });
  }
  return cleared;
}

/// f_s = (f^(1) + .. + f^(R)) / R: the mean of the members' outputs. [Cheng, Alg. 2]
///
/// Shapes    all equal; any strides.
/// Throws    error for no member, shapes that differ, or a mean with memory that a member has too;
///           nothing has been written then.
/// Numerics  Sums in double in the order given, one rounding to T. The mean of finite outputs is finite.
template <averageable T>
void average_outputs(const tensor_views<const T>& members, const tensor_view<T>& mean) {
  const detail::float_mode mode;
  if (members.size() == 0) detail::fail("subfed: average_outputs: there is no member");
  for (std::size_t m = 0; m < members.size(); ++m) {
    detail::check_shape("average_outputs", "output", "of member " + std::to_string(m),
                        members[m].extents(), mean.extents());
  }
  detail::written_tensors memory("average_outputs");
  memory.writes("mean", "", mean);
  for (std::size_t m = 0; m < members.size(); ++m) {
    memory.reads("output", "of member " + std::to_string(m), members[m]);
  }
  memory.check_apart();
  const auto sums_of = [&](double scale) {
    std::vector<double> sums(static_cast<std::size_t>(mean.size()), -0.0);
    for (const tensor_view<const T>& output : members) {
      std::size_t i = 0;
      detail::for_each_offset(output, [&](std::int64_t o) {
        sums[i++] +=
            detail::rounded_product(scale, scalar_traits<T>::load(output.data_handle()[o]));
      });
    }
    return sums;
  };
  const std::vector<double> sums = sums_of(1);
  std::vector<double> scaled_sums;  // for those that were too large
  if (!std::all_of(sums.begin(), sums.end(), detail::is_finite_double))
    scaled_sums = sums_of(0x1p-64);
  const auto count = static_cast<double>(members.size());
  std::size_t i = 0;
  detail::for_each_offset(mean, [&](std::int64_t o) {
    const double own =
        detail::is_finite_double(sums[i]) ? sums[i] / count : scaled_sums[i] / count * 0x1p64;
    mean.data_handle()[o] = scalar_traits<T>::store(own);
    ++i;
  });
}

}  // namespace subfed::inline v0
