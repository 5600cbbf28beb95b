# SPDX-License-Identifier: MIT
# cmake -DPROGRAM=... -DEXPECTED=... -P compare-output.cmake: the program must succeed and print
# exactly the expected text.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${EXPECTED} expected)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}.")
elseif(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\nexpected, as in ${EXPECTED},\n${expected}")
endif()
