// SPDX-License-Identifier: MIT
#include "file_options.hpp"

#include <fmt/format.h>

#include <common/failure.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../coverage/number_option.hpp"
#include "choice.hpp"
#include "file_commands.hpp"

namespace tool {
namespace {

using coverage_tool::add_number;

constexpr const char* scheme_text =
    "The scheme, with options after colons, such as rolling:step=4:round=ceil. rolling has step=N, "
    "overlap=R, backward, phase=N and client-phase=N; random has pool=S, pool-per-round=S, "
    "shared=ROUNDS and per-client; static; ensemble has advance=N; all but ensemble have "
    "round=floor|ceil|nearest.";

void add_model(CLI::App* command, file_options& o) {
  command
      ->add_option(
          "--model", o.model,
          "The model file: groups, tensors and roles (docs/model_file.md); subfed describe "
          "--emit json makes one.")
      ->required();
}
void add_server(CLI::App* command, file_options& o) {
  command
      ->add_option(
          "--server", o.server,
          "The global model: a .safetensors file, the .json index of several, or a .npz file.")
      ->required();
}
void add_key(CLI::App* command, file_options& o) {
  command->add_option("--scheme", o.scheme, scheme_text);
  add_number(*command, "--seed", o.seed, "The seed of random schemes.");
  add_number(*command, "--round", o.round, "The round, where a list has no column for it.");
}
void add_threads(CLI::App* command, file_options& o) {
  add_number(*command, "--threads", o.threads,
             "Threads, at most 1024; 0 for as many as there are cores.");
}

void add_averaging(CLI::App* command, file_options& o) {
  subfed::average_options& how = o.averaging;
  add_number(*command, "--step", how.step, "The server's step size, for parameters.");
  add_choice<subfed::divisor>(
      command, "--divide-by", how.divide_by,
      {{"holders", subfed::divisor::holders}, {"cohort", subfed::divisor::cohort}},
      "The weights of the clients that hold an element, or of all clients.");
  add_choice<subfed::content>(
      command, "--content", how.content,
      {{"parameters", subfed::content::parameters}, {"deltas", subfed::content::deltas}},
      "What the updates contain.");
  add_choice<subfed::non_finite>(command, "--non-finite", how.on_non_finite,
                                 {{"propagate", subfed::non_finite::propagate},
                                  {"refuse", subfed::non_finite::refuse},
                                  {"skip-client", subfed::non_finite::skip_client},
                                  {"skip-element", subfed::non_finite::skip_element}},
                                 "What happens to an update with a NaN or an infinity.");
  add_choice<subfed::integer_rule>(
      command, "--integers", how.integers,
      {{"keep", subfed::integer_rule::keep},
       {"max", subfed::integer_rule::max},
       {"sum", subfed::integer_rule::sum}},
      "What happens to integers and counters: the server's stay, or the clients' largest or sum "
      "is taken.");
  add_choice<subfed::late_update>(
      command, "--on-late", how.on_late,
      {{"refuse", subfed::late_update::refuse}, {"skip", subfed::late_update::skip}},
      "With --round: what happens to an update of another round.");
  add_choice<subfed::repeated_update>(
      command, "--on-repeated", how.on_repeated,
      {{"refuse", subfed::repeated_update::refuse}, {"skip", subfed::repeated_update::skip}},
      "With --round: what happens to a second update of a client.");
  command->add_flag("--skip-bad", o.skip_bad,
                    "Leaves out and lists updates that cannot be read or do not fit, instead of "
                    "ending with the first.");
}

}  // namespace

void add_file_commands(CLI::App& app, std::function<int()>& chosen) {
  // Options outlive the parsing, as the function that is chosen does.
  const auto o = std::make_shared<file_options>();
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto add = [&](const char* name, const char* help, std::function<int()> run) {
    CLI::App* const command = app.add_subcommand(name, help);
    command->callback([&chosen, o, run = std::move(run)] {
      if (o->threads < 0 || o->threads > 1024) {
        throw common::failure(
            fmt::format("--threads is {}, but 0 to 1024 is expected.", o->threads));
      }
      chosen = run;
    });
    return command;
  };

  CLI::App* command = add("info", "Lists the tensors of checkpoints, with types, shapes and bytes.",
                          [=] { return info(*names, o->json); });
  command->add_option("files", *names, "Checkpoints.")->required();
  command->add_flag("--json", o->json, "Prints JSON.");

  command = add("check",
                "Compares a model file with checkpoints: names, shapes, types, groups that nothing "
                "uses. The status is 2 where something is wrong.",
                [=] { return check(*o, *names); });
  add_model(command, *o);
  command->add_option("files", *names, "Checkpoints of the global model.")->required();

  command = add("cut",
                "Writes what each client of a list holds of the global model into a file of its "
                "own, with what average needs to know in its metadata.",
                [=] { return cut(*o); });
  add_model(command, *o);
  add_server(command, *o);
  command
      ->add_option("--clients", o->clients,
                   "A CSV list; its first line names the columns: client, capacity, and if need be "
                   "round, weight, seed, file. Or a .json array of objects with these keys.")
      ->required();
  add_key(command, *o);
  command->add_option("--out", o->out, "A folder for the clients' files.")->required();
  add_threads(command, *o);
  command->add_flag("--dry-run", o->dry_run, "Says what would be written, and writes nothing.");

  command = add("average",
                "Averages clients' files into the global model: each element over exactly the "
                "clients that hold it.",
                [=] { return average(*o); });
  add_model(command, *o);
  add_server(command, *o);
  command->add_option("updates", o->updates,
                      "The clients' files, or folders of them; their metadata says which client, "
                      "round and capacity, as cut writes it.");
  command->add_option("--clients", o->clients,
                      "Instead: a list in CSV or JSON with client, capacity, file, and if need be "
                      "round, weight, seed.");
  add_key(command, *o);
  command->get_option("--round")->each([o](const std::string&) { o->one_round = true; });
  add_averaging(command, *o);
  command->add_option("--out", o->out, "The new model: a file, or an index in another folder.")
      ->required();
  add_threads(command, *o);
  command->add_flag("--dry-run", o->dry_run,
                    "Reads the headers, says what would be read and written, and writes nothing.");
  command->add_flag("--json", o->json, "Prints the report as JSON.");

  command = add("scatter", "Puts one client's file back into the global model, as it is.",
                [=] { return put_back(*o); });
  add_model(command, *o);
  add_server(command, *o);
  command->add_option("update", o->updates, "The client's file.")->required()->expected(1);
  command->add_option("--scheme", o->scheme, scheme_text);
  command->add_option("--out", o->out, "The new model: a file, or an index in another folder.")
      ->required();

  command =
      add("diff",
          "Says which tensors of two checkpoints differ and by how much. The status is 0 where "
          "they are the same, 2 where they differ.",
          [=] { return diff((*names)[0], (*names)[1], o->model, o->json); });
  command->add_option("files", *names, "Two checkpoints.")->required()->expected(2);
  command->add_option("--model", o->model,
                      "A model file: counts the nodes that changed, by group.");
  command->add_flag("--json", o->json, "Prints JSON.");

  command = add("cost", "Parameters and bytes of clients, by capacity.",
                [=] { return cost(*o, *names); });
  add_model(command, *o);
  command->add_option("--capacity", *names, "Capacities, such as 1 1/2 1/4.")->required();
  command->add_option("--server", o->server,
                      "The global model, for the sizes of its elements; otherwise 4 bytes.");
  add_key(command, *o);
  command->add_flag("--json", o->json, "Prints JSON.");
}

}  // namespace tool
