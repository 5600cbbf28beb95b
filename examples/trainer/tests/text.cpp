// SPDX-License-Identifier: MIT
/// What the terminal shows: wrapped text, the line of progress, the sentence of an interruption.
#include <doctest/doctest.h>

#include <string>

#include <common/wrapped.hpp>
#include "interruption.hpp"
#include "progress.hpp"

TEST_CASE("text is broken at blanks, under the column where it begins") {
  using common::wrapped;
  CHECK(wrapped("") == "");
  CHECK(wrapped("a b\nc\n", 3) == "a b\nc\n");
  CHECK(wrapped("one two three", 7) == "one two\nthree");
  CHECK(wrapped("one two three", 8) == "one two\nthree");
  CHECK(wrapped("one two  \nx", 7) == "one two\nx");
  CHECK(wrapped("wordwithoutblank x y", 5) == "wordwithoutblank\nx y");
  CHECK(wrapped("  --a N   what it does for you", 20) ==
        "  --a N   what it\n          does for\n          you");
  CHECK(wrapped("  --a N   what it does for you", 14) ==
        "  --a N   what\n  it does for\n  you");  // a gap in the second half is none
}

TEST_CASE("the line of progress fits a terminal of 80 columns") {
  const trainer::evaluation right{1, 0.5, 0.5};
  const std::string line =
      trainer::progress_text("federated-dropout", 3, 5, 192, 192, &right, 2.3026, 59);
  CHECK(line == "federated-dropout (3 of 5)  round 192/192  100.0 % right  loss 2.303  0:59 left");
  CHECK(line.size() < 80);
  CHECK(trainer::progress_text("fjord", 1, 1, 1, 2, nullptr, 1, 61.5) ==
        "fjord (1 of 1)  round 1/2  - right  loss 1.000  1:02 left");
}

TEST_CASE("an interruption says how to continue") {
  CHECK(trainer::text_of({"fjord", 7, true}, "out") ==
        "Stopped after round 7 of fjord; with --resume the same command continues from the "
        "checkpoint "
        "in out.");
  CHECK(trainer::text_of({"fjord", 7, false}, "out") ==
        "Stopped after round 7 of fjord; nothing of it is kept, as --checkpoint-every is 0.");
  CHECK(trainer::text_of({"fjord", 0, true}, "out") ==
        "Stopped after round 0 of fjord; with --resume the same command continues with what is in "
        "out.");
}
