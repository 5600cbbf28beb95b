# SPDX-License-Identifier: MIT
# The target subfed::cuda, where a CUDA toolkit is installed, and what is built with nvcc to check it.
# The core and its tests need neither.

option(SUBFED_CUDA "Define the target subfed::cuda where a CUDA toolkit is installed" ON)
option(SUBFED_BUILD_CUDA "Build the GPU tests, benchmarks and example of subfed with nvcc" OFF)

if(SUBFED_CUDA)
  find_package(CUDAToolkit QUIET)
endif()
if(TARGET CUDA::cudart)
  add_library(subfed_cuda INTERFACE)
  add_library(subfed::cuda ALIAS subfed_cuda)
  target_link_libraries(subfed_cuda INTERFACE subfed::subfed CUDA::cudart)
elseif(PROJECT_IS_TOP_LEVEL)
  message(STATUS "subfed: no CUDA toolkit is installed; left out: the target subfed::cuda")
endif()

if(SUBFED_BUILD_CUDA)
  if(NOT TARGET subfed_cuda)
    message(FATAL_ERROR "subfed: SUBFED_BUILD_CUDA is on, but no CUDA toolkit was found.")
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # as CUDA::cudart: one runtime in a program
  include(cmake/developer.cmake)
  include(cmake/dependencies.cmake)
  enable_testing()

  # Programs are built for the first architecture alone; tests/cuda/gpu/kernels.cu builds every
  # kernel for all of them.
  list(GET CMAKE_CUDA_ARCHITECTURES 0 subfed_first_architecture)
  function(subfed_add_cuda_program name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE subfed::cuda)
    set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES ${subfed_first_architecture})
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
  endfunction()

  add_subdirectory(tests/cuda/gpu)
  add_subdirectory(examples/cuda)
  add_subdirectory(bench/cuda)
endif()
