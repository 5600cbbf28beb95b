// SPDX-License-Identifier: MIT
/// A network that can be asked how far its outputs move when its nodes are put in another order.
#pragma once

#include <subfed/model_slice.hpp>
#include <subfed/proof/forward.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/tensors.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

template <class T, class Forward>
class probe {
 public:
  /// Throws  error when the outputs show nothing, or are others the second time.
  probe(std::string verb, const model& net, const tensor_views<const T>& values, Forward& forward)
      : verb_(std::move(verb)), values_(values), forward_(forward), permuted_(net) {
    const submodel all = submodel::full(net);
    slice<T>(values_, all, permuted_);  // checks the shapes
    expected_ = outputs(all);
    scale_ = checked_scale(verb_, expected_);
    if (largest_difference(verb_, expected_, outputs(all)) == 0) return;
    fail("subfed: " + verb_ +
         ": the forward function gave other outputs the second time, for the "
         "same tensors; is dropout on, or does it update statistics?");
  }

  /// How far the outputs move, relative to the largest of them. The submodel holds all nodes.
  double change(const submodel& order) {
    slice<T>(values_, order, permuted_);
    return largest_difference(verb_, expected_, outputs(order)) / scale_;
  }

  /// How often the network was run.
  std::int64_t runs() const noexcept { return runs_; }

 private:
  std::vector<double> outputs(const submodel& order) {
    ++runs_;
    return outputs_of<T>(forward_, order, permuted_);
  }

  std::string verb_;
  tensor_views<const T> values_;
  Forward& forward_;
  tensors<T> permuted_;
  std::vector<double> expected_;
  double scale_ = 0;
  std::int64_t runs_ = 0;
};

}  // namespace subfed::inline v0::detail
