// SPDX-License-Identifier: MIT
/// Texts of verses, of any size, for tests.
#pragma once

#include <string>

/// Books A, B, .. of so many verses each. Words follow by simple rules, so that there is something to
/// learn.
inline std::string verses_text(int books, int verses) {
  const char* words[] = {"and", "the", "king", "went", "up", "to", "house", "of", "son", "Behold"};
  std::string out;
  unsigned state = 7, at = 0;
  for (int b = 0; b < books; ++b) {
    for (int v = 0; v < verses; ++v) {
      out += std::string(1, static_cast<char>('A' + b)) + "1:" + std::to_string(v + 1) + " ";
      for (int w = 0; w < 8; ++w) {
        state = state * 1664525u + 1013904223u;
        // Each word's likely successor is the next of the list.
        out += words[(state >> 28) < 12 ? at++ % 10 : (state >> 24) % 10];
        out += w == 7 ? '.' : ' ';
      }
      out += '\n';
    }
  }
  return out;
}
