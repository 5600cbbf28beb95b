// SPDX-License-Identifier: MIT
/// What of Eigen has no elements in memory, is const or would dangle is refused.
// bad 1: subfed: not a tensor that subfed knows
// bad 2: subfed: the destination is const
// bad 3: (conversion|no viable|could not convert)
#include <subfed/adapt/eigen.hpp>
#include <subfed/slice.hpp>

#include <Eigen/Core>

void use(const Eigen::MatrixXf& global, Eigen::MatrixXf& local, Eigen::MatrixXd& wide) {
  const subfed::selection chosen{subfed::index_set::full(2), subfed::index_set::full(3)};
#if SUBFED_BAD == 1
  subfed::slice(global + global, chosen, local);
#elif SUBFED_BAD == 2
  subfed::slice(local, chosen, global.topRows(2));
#elif SUBFED_BAD == 3
  const subfed::tensor_view<const float> view = Eigen::MatrixXf(2, 3);
#else
  subfed::slice(global, chosen, local);
  subfed::slice((global + global).eval(), chosen, local);
  subfed::slice(global.topRows(2), chosen, local.leftCols(3));
  subfed::slice(global, chosen, Eigen::Map<Eigen::MatrixXf>(local.data(), 2, 3));
  subfed::slice(wide, chosen, wide);
  const subfed::tensor_view<const float> view = global;
#endif
}
