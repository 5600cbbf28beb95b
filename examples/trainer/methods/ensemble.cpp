// SPDX-License-Identifier: MIT
/// Simple Ensemble Averaging: R parts of the server's model, its members, each a model of a client's size; the
/// server's answer is the mean of their outputs. [Cheng, Alg. 2, Sec. 3] Weights between members are 0
/// and stay so; the bias of the output layer is common to all.
#include <subfed/adapt/torch.hpp>
#include <subfed/draw.hpp>
#include <subfed/systems/ensemble.hpp>

#include <cmath>

#include "list.hpp"

namespace trainer::methods {
namespace {

class ensemble_method : public method {
 public:
  ensemble_method(const options& settings, const architecture& net) : method(settings, net) {
    members_.by = settings.member_by;
    members_.count = settings.members;
    if (members_.count == 0) {
      const double share = smallest_capacity(settings).value() / settings.server_scale;
      members_.count = static_cast<std::int64_t>(std::ceil(1 / share - 1e-9));
    }
  }

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    return subfed::member_nodes{members_}(where);
  }
  /// A member is a whole model: nothing is scaled.
  double scale(double) const override { return 1; }
  /// Weights between members are cleared; the others are as large as a model of a member's size has
  /// them, which has fewer inputs.
  void start(const tensor_list& globals) const override {
    const std::vector<subfed::submodel> all = evaluated_submodels();
    subfed::clear_unheld<float>(described().net, all, globals);
    for (std::size_t t = 0; t < globals.size(); ++t) {
      const std::vector<std::int64_t> own = all.front().extents(subfed::tensor_id(t));
      if (own.size() < 2) continue;
      const double inputs = static_cast<double>(globals[t].size(1)) / static_cast<double>(own[1]);
      globals[t].mul_(std::sqrt(inputs));
    }
  }
  std::vector<subfed::submodel> evaluated_submodels() const override {
    std::vector<subfed::submodel> out;
    for (std::int64_t r = 0; r < members_.count; ++r) {
      const subfed::member_nodes fixed{{members_.count}};
      out.push_back(
          subfed::draw(described().net, fixed, {.client = static_cast<std::uint64_t>(r)}));
    }
    return out;
  }

 private:
  subfed::ensemble_members members_;
};

}  // namespace

made ensemble(const options& settings, const architecture& described) {
  return std::make_unique<ensemble_method>(settings, described);
}

}  // namespace trainer::methods
