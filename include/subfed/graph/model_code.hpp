// SPDX-License-Identifier: MIT
/// A description as C++.
#pragma once

#include <subfed/dimension.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// A string literal.
inline std::string quoted_code(std::string_view text) {
  constexpr std::string_view octal = "01234567";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte > 0x7E || c == '?') {
      out += '\\';
      for (const int shift : {6, 3, 0}) out += octal[byte >> shift & 7];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// A name of a variable that is not among `taken`, which it joins.
inline std::string variable_name(std::string_view text, std::vector<std::string>& taken) {
  std::string base;
  for (const char c : text) {
    const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (fits) {
      base += c;
    } else if (!base.empty() && base.back() != '_') {
      base += '_';
    }
  }
  while (!base.empty() && base.back() == '_') base.pop_back();
  // A number at the end keeps words of the language away.
  if (base.empty() || (base[0] >= '0' && base[0] <= '9')) base.insert(0, "g");
  constexpr std::string_view words[] = {
      "net",       "subfed",   "auto",     "char",     "class",    "const",   "default", "double",
      "else",      "enum",     "float",    "for",      "if",       "inline",  "int",     "long",
      "namespace", "new",      "operator", "return",   "short",    "signed",  "static",  "struct",
      "switch",    "this",     "union",    "unsigned", "using",    "void",    "while",   "and",
      "or",        "not",      "xor",      "do",       "case",     "bool",    "delete",  "private",
      "public",    "template", "typename", "virtual",  "volatile", "main",    "export",  "goto",
      "break",     "continue", "catch",    "try",      "throw",    "concept", "module"};
  if (std::find(std::begin(words), std::end(words), base) != std::end(words)) base += "_nodes";
  std::string name = base;
  for (int i = 2; std::binary_search(taken.begin(), taken.end(), name); ++i) {
    name = base + "_" + std::to_string(i);
  }
  taken.insert(std::lower_bound(taken.begin(), taken.end(), name), name);
  return name;
}

inline std::string part_code(const dimension::part& p, const std::vector<std::string>& names) {
  const bool is_whole = p.group == dimension::no_group;
  std::string out = is_whole ? std::to_string(p.whole) : names[p.group];
  if (is_whole && p.repeat == 1 && p.block == 1) return out;
  if (is_whole) out = "subfed::dimension(" + out + ")";
  if (p.repeat != 1) out += ".repeat(" + std::to_string(p.repeat) + ")";
  if (p.block != 1) out += ".block(" + std::to_string(p.block) + ")";
  return out;
}
inline std::string dimension_code(const dimension& d, const std::vector<std::string>& names) {
  if (d.parts().size() == 1) return part_code(d.parts()[0], names);
  std::string out;
  for (const dimension::part& p : d.parts()) out += (out.empty() ? "" : ", ") + part_code(p, names);
  return "subfed::concat({" + out + "})";
}

}  // namespace detail

/// A function of that name that makes the description, in a header's form: to be kept and edited.
inline std::string model_code(const model& net, const std::string& function) {
  std::string out =
      "#include <subfed/dimension.hpp>\n#include <subfed/model.hpp>\n\ninline subfed::model " +
      function + "() {\n  using subfed::cut;\n  using subfed::role;\n  subfed::model net;\n";
  std::vector<std::string> taken, names;
  for (const auto& g : net.groups()) {
    names.push_back(detail::variable_name(g.name, taken));
    out += "  const auto " + names.back() + " = net.group(" + detail::quoted_code(g.name) + ", " +
           std::to_string(g.extent) + (g.cut == cut::never ? ", cut::never);\n" : ");\n");
  }
  for (const auto& t : net.tensors()) {
    out += "  net.tensor(" + detail::quoted_code(t.name) + ", {";
    for (std::size_t r = 0; r < t.dimensions.size(); ++r) {
      out += (r == 0 ? "" : ", ") + detail::dimension_code(t.dimensions[r], names);
    }
    out += t.is_parameter() ? "});\n" : "}, role::" + std::string(role_text(t.role)) + ");\n";
  }
  return out + "  return net;\n}\n";
}

}  // namespace subfed::inline v0
