# SPDX-License-Identifier: MIT
# What the programs in folders share, compiled by each as its other sources: they need not have one
# C++ ABI.
set(subfed_common_sources mix.cpp output.cpp rewritten_line.cpp wrapped.cpp)
list(TRANSFORM subfed_common_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
