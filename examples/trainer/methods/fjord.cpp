// SPDX-License-Identifier: MIT
/// FjORD: ordered dropout. A client is sent its largest width and trains it in widths. [FjORD, 3.1]
#include <subfed/schemes/prefix.hpp>

#include "ordered_client.hpp"

namespace trainer::methods {
namespace {

class fjord_method : public method {
 public:
  fjord_method(const options& settings, const architecture& net)
      : method(settings, net), widths_(widths_of(settings)) {}

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    subfed::draw_request widest = where;
    widest.capacity = widths_.largest(where.capacity);
    return subfed::prefix::ordered()(widest);
  }
  std::unique_ptr<client_side> client(const local_training&) const override {
    return std::make_unique<ordered_client>(settings(), described(), widths_);
  }
  weight_rule weights() const override { return weight_rule::examples; }

 private:
  subfed::width_distribution widths_;
};

}  // namespace

made fjord(const options& settings, const architecture& described) {
  return std::make_unique<fjord_method>(settings, described);
}

}  // namespace trainer::methods
