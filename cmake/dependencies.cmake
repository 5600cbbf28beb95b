# SPDX-License-Identifier: MIT
# What the tests, examples and tools use. The library itself needs nothing.
#
# doctest and RapidCheck are required by the tests: an installed copy is used, otherwise the pinned
# commit is fetched, unless FETCHCONTENT_FULLY_DISCONNECTED forbids that. Everything else is
# optional: what is not installed is left out and named in one line.

include_guard()
include(FetchContent)

FetchContent_Declare(doctest
  GIT_REPOSITORY https://github.com/doctest/doctest.git
  GIT_TAG b7c21ec5ceeadb4951b00396fc1e4642dd347e5f  # 2.4.9
  FIND_PACKAGE_ARGS 2.4.9)
FetchContent_Declare(rapidcheck
  GIT_REPOSITORY https://github.com/emil-e/rapidcheck.git
  GIT_TAG ff6af6fc683159deb51c543b065eba14dfcf329b  # has no releases; December 2023
  FIND_PACKAGE_ARGS CONFIG)
# What tests/ finds is there for examples/ and tools/ too. (CMake 3.25 cannot have this before the
# declarations.)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

macro(subfed_require_test_libraries)
  if(FETCHCONTENT_FULLY_DISCONNECTED)
    find_package(doctest 2.4.9 QUIET)
    find_package(rapidcheck CONFIG QUIET)
  else()
    FetchContent_MakeAvailable(doctest rapidcheck)
    foreach(target doctest rapidcheck)
      if(TARGET ${target})
        set_target_properties(${target} PROPERTIES SYSTEM ON)  # their headers are not ours to mend
      endif()
    endforeach()
  endif()
  if(NOT TARGET doctest::doctest OR NOT TARGET rapidcheck)
    message(FATAL_ERROR
      "The tests of subfed need doctest 2.4.9 and RapidCheck (Debian: doctest-dev and "
      "librapidcheck-dev). Install them with scripts/install-packages, or configure with "
      "-DSUBFED_BUILD_TESTS=OFF.")
  endif()
endmacro()

# subfed_optional(<package> "<what is left out without it>" [find_package arguments])
macro(subfed_optional package what)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(STATUS "subfed: ${package} is not installed; left out: ${what}")
  endif()
endmacro()

option(SUBFED_TORCH "Build what needs LibTorch, where it is installed" ON)

# Gives the target subfed_torch where LibTorch is installed. LibTorch's headers do not pass our
# warnings and are included as system headers; its C++ ABI flag is part of the target.
macro(subfed_find_torch what)
  if(NOT SUBFED_TORCH)
    message(STATUS "subfed: SUBFED_TORCH is off; left out: ${what}")
  elseif(NOT TARGET subfed_torch)
    subfed_optional(Torch "${what}")
    if(Torch_FOUND)
      separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
      add_library(subfed_torch INTERFACE)
      target_compile_options(subfed_torch INTERFACE ${torch_flags})
      target_include_directories(subfed_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
      target_link_libraries(subfed_torch INTERFACE ${TORCH_LIBRARIES})
      # LibTorch's umbrella header takes 15 seconds to read. It is read once:
      # target_precompile_headers(<target> REUSE_FROM subfed_torch_headers)
      file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp CONTENT "\n")
      add_library(subfed_torch_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp)
      target_link_libraries(subfed_torch_headers PRIVATE subfed::subfed subfed_warnings subfed_torch)
      target_precompile_headers(subfed_torch_headers PRIVATE <torch/torch.h>)
    endif()
  endif()
endmacro()
