// SPDX-License-Identifier: MIT
/// The main function of test programs that run on several ranks: every rank runs every test case, and
/// the first one prints.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstdio>
#include <sstream>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int failed = 0;
  {
    std::ostringstream text;
    doctest::Context context(argc, argv);
    if (rank != 0) context.setCout(&text);
    failed = context.run();
    if (rank != 0 && failed != 0) std::fprintf(stderr, "rank %d:\n%s\n", rank, text.str().c_str());
  }
  MPI_Finalize();
  return failed;
}
