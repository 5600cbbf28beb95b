# SPDX-License-Identifier: MIT
# cmake -DCOMMAND=program|argument|.. -DEXPECTED=.. -P compare-output.cmake: the program must succeed
# and print exactly the expected text.
string(REPLACE "|" ";" command "${COMMAND}")
execute_process(COMMAND ${command} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${EXPECTED} expected)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${command} ended with ${status}.")
elseif(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${command} printed\n${printed}\nexpected, as in ${EXPECTED},\n${expected}")
endif()
