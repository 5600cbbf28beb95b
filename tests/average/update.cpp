// SPDX-License-Identifier: MIT
#include <subfed/average/update.hpp>

#include <vector>

TEST_CASE("an update has a submodel, its tensors and weight 1") {
  subfed::model net;
  net.tensor("x", {2});
  const std::vector<float> x{3, 4};
  const subfed::update<float> u{subfed::submodel(net, {}),
                                {subfed::tensor_view<const float>(x.data(), {2})}};
  CHECK(u.weight == 1);
  CHECK(u.tensors[0].data_handle()[1] == 4);
}
