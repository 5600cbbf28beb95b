// SPDX-License-Identifier: MIT
/// The subcommands that work on checkpoints and updates in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <subfed/average/options.hpp>
#include <vector>

#include "checkpoint.hpp"
#include "clients.hpp"

namespace tool {

/// What cut, average, scatter, check and cost share.
struct file_options {
  std::string model;    // a model file
  std::string server;   // the global model's checkpoint
  std::string out;      // a file, an index, or for cut a folder
  std::string clients;  // a list in CSV or JSON
  std::string scheme = "rolling";
  std::vector<std::string> updates;  // files, or folders of them
  std::uint64_t seed = 0;
  std::uint64_t round = 0;
  int threads = 0;
  bool json = false;
  bool dry_run = false;
  bool skip_bad = false;
  subfed::average_options averaging;
  bool one_round = false;  // average: updates of `round` alone
};

/// Prints JSON. What is not UTF-8, as the names of files may be, is replaced in it.
void print_json(const nlohmann::ordered_json& value);

/// Each returns the program's exit status.
int info(const std::vector<std::string>& files, bool json);
int check(const file_options& options, const std::vector<std::string>& files);
int cut(const file_options& options);
int average(const file_options& options);
int put_back(const file_options& options);
int diff(const std::string& before, const std::string& after, const std::string& model, bool json);
int cost(const file_options& options, const std::vector<std::string>& capacities);

/// A model file, and after its tensors those that only the server's checkpoint has: they are whole for
/// every client. Floating-point ones are parameters, others counters.
///
/// Throws  failure that names tensor, expected and found where the two do not fit.
subfed::model whole_model(const std::string& model, const checkpoint& server);

/// The tensors of the server's checkpoint that cannot be averaged, by name; whole_model leaves them
/// out.
std::vector<std::string> opaque_tensors(const checkpoint& server);

/// The views of a client's tensors in the model's order; of a local tensor that the file lacks, an
/// empty one. Deltas of integers may have another integer type than the model.
///
/// Throws  failure that names file, tensor, expected and found.
subfed::tensor_views<const void> client_views(const subfed::submodel& sub, const checkpoint& file,
                                              const subfed::tensor_views<const void>& globals,
                                              aligned_views& aligned, subfed::content what);
subfed::tensor_views<const void> server_views(const subfed::model& net, const checkpoint& server,
                                              aligned_views& aligned);

/// The files of a checkpoint copied to a path like its own, to be changed before they appear. For an
/// index the parts keep their names; the index appears last.
class checkpoint_copy {
 public:
  /// Throws  failure where an index would be replaced by itself: a run that is killed could leave parts
  ///         of two models.
  /// Tensors of `rewritten` names, sorted, are not copied: every element gets a new value.
  checkpoint_copy(const checkpoint& from, const std::filesystem::path& to,
                  const std::vector<std::string>& rewritten = {});
  /// Bytes that are copied.
  std::size_t bytes() const;
  /// Copies a part of them, at most so many; returns how many, 0 when all are copied.
  std::size_t copy_some(std::size_t bytes);
  /// The writable view of a tensor: of a copy where its address in the file does not suit its type.
  ///
  /// Pre  all is copied.
  subfed::tensor_view<void> view(const stored_tensor& tensor);
  void finish();

 private:
  const checkpoint& from_;
  std::filesystem::path to_;
  std::vector<std::unique_ptr<output_file>> parts_;
  struct range {
    std::size_t part, begin, end;
  };
  std::vector<range> copied_;  // what is left, from the end
  struct misplaced {
    std::byte* at;
    std::size_t size;
    std::unique_ptr<std::max_align_t[]> elements;
  };
  std::vector<misplaced> elsewhere_;
};

}  // namespace tool
