// SPDX-License-Identifier: MIT
/// Secure aggregation of submodels, from keys to the average: clients are processes that talk to the server
/// over the loopback, 30 % of them leave at each point of the protocol, and each result is compared, to
/// the bit, with the average of the same updates without masks.
///
///   subfed_secure_aggregation [width of the hidden layers, 64]
///
/// libsodium has the keys, the signatures and the generator of masks, libgfshare the shares. The program
/// ends with 0 when every result is equal, and every round that must not have one has none.

#include "client.hpp"
#include "server.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "../common/program.hpp"
#include "../common/text.hpp"

namespace {

using namespace secure_aggregation;

/// 7 of 24 clients: at most two of each capacity, so that every class stays large enough.
constexpr std::uint64_t leaving[] = {0, 3, 7, 11, 15, 18, 22};

struct trial {
  const char* what;
  std::function<behaviour(std::uint64_t)> does;
  const char* error = "";  ///< a part of the sentence with which the round ends without a result
};

bool leaves(std::uint64_t client) {
  return std::find(std::begin(leaving), std::end(leaving), client) != std::end(leaving);
}
trial without(const char* what, behaviour at) {
  return {what, [at](std::uint64_t c) { return leaves(c) ? at : behaviour::honest; }};
}

std::vector<trial> trials() {
  std::vector<trial> out{{"nobody leaves", [](std::uint64_t) { return behaviour::honest; }}};
  out.push_back(without("30 % leave before keys", behaviour::leaves_before_keys));
  out.push_back(without("30 % leave before shares", behaviour::leaves_before_shares));
  out.push_back(without("30 % leave before upload", behaviour::leaves_before_upload));
  out.push_back({"30 % leave, one is late", [](std::uint64_t c) {
                   return c == 7      ? behaviour::uploads_late
                          : leaves(c) ? behaviour::leaves_before_upload
                                      : behaviour::honest;
                 }});
  out.push_back(without("30 % leave before agreeing", behaviour::leaves_before_agreeing));
  out.push_back(without("30 % leave before opening", behaviour::leaves_before_opening));
  out.push_back({"30 % leave, all over", [](std::uint64_t c) {
                   switch (c) {
                     case 0:
                       return behaviour::leaves_before_keys;
                     case 3:
                       return behaviour::leaves_before_shares;
                     case 7:
                     case 11:
                       return behaviour::leaves_before_upload;
                     case 15:
                     case 18:
                       return behaviour::leaves_before_agreeing;
                     case 22:
                       return behaviour::leaves_before_opening;
                     default:
                       return behaviour::honest;
                   }
                 }});
  out.push_back({"half leave before upload",
                 [](std::uint64_t c) {
                   return c % 2 == 0 ? behaviour::leaves_before_upload : behaviour::honest;
                 },
                 "12 clients have sent updates, expected at least 13"});
  out.push_back(
      {"a client changes a share",
       [](std::uint64_t c) { return c == 9 ? behaviour::changes_a_share : behaviour::honest; },
       "has another hash than the client sent: a share is wrong"});
  return out;
}

/// Starts a process for each client; f(client) is all that it does.
template <class F>
std::vector<pid_t> start(F&& f) {
  std::fflush(nullptr);
  std::vector<pid_t> out;
  for (std::uint64_t c = 0; c < task::clients; ++c) {
    const pid_t child = fork();
    if (child < 0) throw failure("no process can be started");
    if (child == 0) {
      try {
        f(c);
        std::_Exit(0);
      } catch (const std::exception&) {
        std::_Exit(3);  // the server is gone, or has said what may not be
      }
    }
    out.push_back(child);
  }
  return out;
}
/// How many have ended with an error.
int end(const std::vector<pid_t>& children) {
  int bad = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    bad += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  }
  return bad;
}

bool same_bits(const subfed::tensors<float>& a, const subfed::tensors<float>& b) {
  return std::memcmp(a.elements().data(), b.elements().data(), a.elements().size_bytes()) == 0;
}

/// The average without masks over the survivors: what is not released stays as it was.
subfed::tensors<float> expected(const task& about, const outcome& result, std::uint64_t round,
                                const std::vector<std::uint64_t>& participants) {
  std::vector<subfed::secure_participant> all;
  for (const std::uint64_t c : participants) {
    all.push_back({about.draw(round, c, task::capacity_of(c)), task::weight_of(c)});
  }
  const subfed::secure_round plan(all, about.options);
  subfed::selective_average<float> mean(about.net, about.options.average);
  for (const std::uint64_t c : result.survivors) {
    const auto sub = about.draw(round, c, task::capacity_of(c));
    mean.add(sub.restricted(about.classes, c < 2 ? subfed::index_set(10, {}) : about.labels_of(c)),
             about.trained(sub), task::weight_of(c));
  }
  subfed::tensors<float> out = about.globals();
  const subfed::tensors<float> before = out;
  mean.finish(out);
  std::size_t i = 0;
  for (std::size_t t = 0; t < about.net.tensors().size(); ++t) {
    const subfed::tensor_id id(t);
    for (std::int64_t e = 0; e < out[id].size(); ++e, ++i) {
      if (!plan.released().test(id, e)) out.elements()[i] = before.elements()[i];
    }
  }
  return out;
}

void print(const outcome& result) {
  std::printf("  %-16s %8s %12s %12s %10s\n", "stage", "clients", "kB up", "kB down", "ms");
  stage total{"together"};
  for (const stage& s : result.stages) {
    std::printf("  %-16s %8zu %12.1f %12.1f %10.1f\n", s.name.c_str(), s.clients,
                static_cast<double>(s.up) / 1000, static_cast<double>(s.down) / 1000,
                s.seconds * 1000);
    total.up += s.up;
    total.down += s.down;
    total.seconds += s.seconds;
    total.clients = s.clients;
  }
  if (result.stages.size() == 1) return;
  std::printf("  %-16s %8zu %12.1f %12.1f %10.1f\n", total.name.c_str(), total.clients,
              static_cast<double>(total.up) / 1000, static_cast<double>(total.down) / 1000,
              total.seconds * 1000);
}

int run(std::int64_t width) {
  start_crypto();
  const task about(width);
  std::vector<signing_key> keys;
  registry known;
  for (std::uint64_t c = 0; c < task::clients; ++c) {
    keys.push_back(signing_key::random());
    known.push_back(keys.back().open);
  }
  std::printf(
      "%lld parameters, %llu clients that hold all, 3/4, 1/2 or 1/4 of the nodes; threshold "
      "%lld\n\n",
      static_cast<long long>(about.net.size()), static_cast<unsigned long long>(task::clients),
      static_cast<long long>(task::threshold));
  {
    listener door;
    const auto children =
        start([&](std::uint64_t c) { run_plain_client(about, 1, c, door.port()); });
    subfed::tensors<float> globals = about.globals();
    const outcome result = run_plain_server(about, 1, door, task::clients, globals);
    end(children);
    std::printf("without masks\n");
    print(result);
  }

  int wrong = 0;
  std::vector<std::string> lines;
  std::uint64_t round = 1;
  for (const trial& one : trials()) {
    listener door;
    std::size_t late = 0;
    for (std::uint64_t c = 0; c < task::clients; ++c) {
      if (one.does(c) == behaviour::uploads_late) ++late;
    }
    const auto children = start([&](std::uint64_t c) {
      const signing_key own = keys[c];
      keys.clear();
      run_client(about, known, own, round, c, door.port(), one.does(c));
    });
    subfed::tensors<float> globals = about.globals();
    const std::string name = one.what;
    std::string verdict;
    try {
      const outcome result = run_server(about, known, round, door, task::clients, late, globals);
      std::vector<std::uint64_t> participants;
      for (std::uint64_t c = 0; c < task::clients; ++c) {
        if (one.does(c) == behaviour::leaves_before_keys) continue;
        if (one.does(c) != behaviour::leaves_before_shares) participants.push_back(c);
      }
      const bool equal =
          same_bits(globals, expected(about, result, round, participants)) && !*one.error;
      const bool refused = late == 0 || result.late.find("is late") != std::string::npos;
      wrong += equal && refused ? 0 : 1;
      verdict = std::to_string(result.survivors.size()) + " in the sum, " +
                std::to_string(result.released) + " parameters; " +
                (equal ? "equal to the bit" : "WRONG");
      if (late != 0) verdict += refused ? ", late upload refused" : ", LATE UPLOAD TAKEN";
      if (lines.empty()) {
        std::printf("\nwith masks\n");
        print(result);
      }
    } catch (const std::exception& e) {
      const std::string sentence = e.what();
      const bool meant = *one.error != '\0' && sentence.find(one.error) != std::string::npos &&
                         same_bits(globals, about.globals());
      wrong += meant ? 0 : 1;
      verdict = (meant ? "no result: " : "WRONG: ") + sentence;
    }
    const int bad = end(children);
    if (bad != 0 && *one.error == '\0') {
      ++wrong;
      verdict += ", and " + std::to_string(bad) + " clients ended with an error";
    }
    lines.push_back(name);
    lines.back().resize(28, ' ');
    lines.back() += verdict;
    ++round;
  }
  std::printf("\n");
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return common::run_program("subfed_secure_aggregation", [&] {
    const auto width = common::number<std::int64_t>(argc > 1 ? argv[1] : "64");
    if (argc > 2 || !width || *width < 4 || *width > 4096) {
      throw common::failure("The argument is the width of the hidden layers, 4 to 4096.");
    }
    return run(*width);
  });
}
