// SPDX-License-Identifier: MIT
#include <subfed/adapt/mpi.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  subfed::model net;
  net.tensor("w", {2});
  float w[] = {0, 0};
  {
    const subfed::mpi::communicator world(MPI_COMM_WORLD);
    subfed::selective_average<float> mean(net,
                                          {.sums = subfed::fixed_point{.bound = 4, .clients = 2}});
    const float update[] = {1, 2};
    mean.add(subfed::submodel::full(net), {subfed::tensor_view<const float>(update, {2})});
    subfed::mpi::all_reduce(mean, world);
    mean.finish({subfed::tensor_view<float>(w, {2})});
  }
  MPI_Finalize();
  return w[0] == 1 && w[1] == 2 ? 0 : 1;
}
