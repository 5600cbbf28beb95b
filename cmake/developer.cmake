# SPDX-License-Identifier: MIT
# What only the tests, examples and tools of this repository are built with. Nothing here is exported.

include_guard()

option(SUBFED_WERROR "Treat warnings in the tests, examples and tools of subfed as errors" OFF)
set(SUBFED_SANITIZE "" CACHE STRING
  "Sanitizers for the tests, examples and tools of subfed, for instance address,undefined")
set(SUBFED_PROGRAM_SANITIZE "${SUBFED_SANITIZE}" CACHE STRING
  "Those of them for the examples and tools, whose files take twice as long to compile with all")

set(CMAKE_CXX_EXTENSIONS OFF)
add_library(subfed_warnings INTERFACE)
target_compile_options(subfed_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wundef
  $<$<BOOL:${SUBFED_WERROR}>:-Werror>)
# GCC 12's optimiser warns about copies inside std::string and reads of std::optional that cannot
# happen. The former fill the screen (GCC bug 105651) and are off; such guesses stay warnings otherwise.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(subfed_warnings INTERFACE -Wno-error=array-bounds
    -Wno-error=maybe-uninitialized -Wno-error=restrict
    -Wno-error=stringop-overflow -Wno-error=stringop-overread)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(subfed_warnings INTERFACE
      -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()

# Every own target that is not tied to an uninstrumented third-party ABI links this.
add_library(subfed_developer INTERFACE)
target_link_libraries(subfed_developer INTERFACE subfed::subfed subfed_warnings)
if(SUBFED_SANITIZE)
  set(is_test $<PATH:IS_PREFIX,${PROJECT_SOURCE_DIR}/tests,$<TARGET_PROPERTY:SOURCE_DIR>>)
  set(flags -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(subfed_developer INTERFACE
    -fsanitize=$<${is_test}:${SUBFED_SANITIZE}>$<$<NOT:${is_test}>:${SUBFED_PROGRAM_SANITIZE}> ${flags})
  target_link_options(subfed_developer INTERFACE -fsanitize=${SUBFED_SANITIZE} ${flags})
endif()

# subfed_share_engine(<target>...): they leave averages and slices to the target subfed_engine, where the
# tests are built; a file that averages compiles in half to two thirds of the time. What is there to be
# copied, the examples, does so with GCC alone: Clang compiles them as a user does, who includes nothing
# more than what they say.
function(subfed_share_engine)
  if(TARGET subfed_engine)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE "SHELL:-include subfed/extern_templates.hpp")
      target_link_libraries(${target} PRIVATE subfed_engine)
    endforeach()
  endif()
endfunction()

# The same of a target whose precompiled header must come first and whose files are compiled in groups.
function(subfed_share_engine_in_groups target)
  if(TARGET subfed_engine)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#include <subfed/extern_templates.hpp>")
    target_link_libraries(${target} PRIVATE subfed_engine)
  endif()
endfunction()

# With LibTorch, which has no sanitizers and decides about the C++ ABI.
function(subfed_share_engine_with_torch target)
  get_target_property(options subfed_torch INTERFACE_COMPILE_OPTIONS)
  if(NOT SUBFED_SANITIZE AND NOT options MATCHES "_CXX11_ABI=0")
    subfed_share_engine_in_groups(${target})
  endif()
endfunction()
