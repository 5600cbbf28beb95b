# SPDX-License-Identifier: MIT
# subfed::subfed brings an include folder and the language level, and nothing else.

foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS LINK_OPTIONS LINK_LIBRARIES)
  get_target_property(value subfed::subfed INTERFACE_${property})
  if(value)
    message(FATAL_ERROR "subfed::subfed leaks INTERFACE_${property}: ${value}")
  endif()
endforeach()
get_target_property(features subfed::subfed INTERFACE_COMPILE_FEATURES)
if(NOT features STREQUAL "cxx_std_20")
  message(FATAL_ERROR "subfed::subfed asks for '${features}' instead of cxx_std_20")
endif()
