# SPDX-License-Identifier: MIT
# The target subfed::mpi, where MPI is installed: for <subfed/adapt/mpi.hpp>. Nothing else needs it.

option(SUBFED_MPI "Define the target subfed::mpi where MPI is installed" ON)

if(SUBFED_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # the old C++ bindings
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(TARGET MPI::MPI_CXX)
  add_library(subfed_mpi INTERFACE)
  add_library(subfed::mpi ALIAS subfed_mpi)
  target_link_libraries(subfed_mpi INTERFACE subfed::subfed MPI::MPI_CXX)
elseif(PROJECT_IS_TOP_LEVEL)
  set(why "MPI is not installed")
  if(NOT SUBFED_MPI)
    set(why "SUBFED_MPI is off")
  endif()
  message(STATUS "subfed: ${why}; left out: the target subfed::mpi, its tests, and runs of the trainer "
    "and of `subfed coverage` on several ranks")
endif()

# What lets Open MPI run in containers, as root, with more ranks than cores; other MPIs ignore it. The
# libraries of MPI leak at exit.
set(subfed_mpi_environment
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_plm=isolated  # this machine alone: there may be no ssh
  OMPI_MCA_mpi_yield_when_idle=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none
  PRTE_ALLOW_RUN_AS_ROOT=1
  PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  ASAN_OPTIONS=detect_leaks=0)

# subfed_add_mpi_test(<name> <ranks> <program> [argument...]): a test that runs on so many ranks.
function(subfed_add_mpi_test name ranks program)
  add_test(NAME ${name}
    COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS ${ranks}
    ENVIRONMENT "${subfed_mpi_environment};UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
endfunction()
