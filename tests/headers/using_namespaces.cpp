// SPDX-License-Identifier: MIT
// A program that says `using namespace` of both can write our names alone. All of them are here, as
// scripts/public-names checks, which has the exceptions too: a name of two meanings does not compile, also in
// a template that nobody uses.
#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <charconv>
#include <chrono>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <forward_list>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <latch>
#include <list>
#include <numbers>
#include <numeric>
#include <queue>
#include <random>
#include <ratio>
#include <regex>
#include <semaphore>
#include <shared_mutex>
#include <sstream>
#include <stack>
#include <string>
#include <thread>
#include <unordered_map>
#include <valarray>
#include <variant>
#include <vector>
#if __has_include(<unistd.h>)
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <subfed/adapt/byte_tensor.hpp>
#include <subfed/adapt/dlpack.hpp>
#include <subfed/adapt/model_file.hpp>
#include <subfed/adapt/npy.hpp>
#include <subfed/adapt/onnx.hpp>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/torch.hpp>
#include <subfed/coverage.hpp>
#include <subfed/coverage/theory.hpp>
#include <subfed/graph.hpp>
#include <subfed/messages.hpp>
#include <subfed/proof.hpp>
#include <subfed/secure.hpp>
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

using namespace std;
using namespace subfed;

template <class...>
struct listed {};

using types = listed<
    absent_logits, affine, attention_heads, attention_layer, attention_tensors, average_options,
    average_report, batch_dimension, batch_norm_layer, batch_norm_tensors, bfloat16, bias, binding,
    broken_group, byte_tensor, capacity, capacity_assignment, capacity_class, capacity_mix,
    channel_moments, clipped_update, coarse_tie, cohort_member, cohort_model, cohort_options,
    content, conv1d_layer, conv2d_layer, conv3d_layer, cost_rule, count_histogram, cover_bounds,
    coverage, coverage_by_class, coverage_summary, cut, derive_options, derived_description,
    derived_model, description_check, description_proof, dimension, direction, distillation_options,
    divisor, doubt, doubt_kind, draw_key, draw_request, element_format, embedding_layer,
    ensemble_members, error, error_handler, error_subject, evenness, expected_counts,
    expected_flops, fate, few_holders, fixed_point, flatten_order, flops_budget,
    fused_attention_layer, fused_attention_tensors, fused_rows, graph_attribute, graph_node,
    graph_value, group_capacity, group_difference, group_id, group_norm_layer, group_note, half,
    held_elements, held_window, holder_summary, index_lists, index_set, integer_rule,
    keep_optimizer_options, keep_probabilities, keep_report, keep_stop, kept_share, known_copies,
    late_update, layer_norm_layer, linear_layer, linear_weight, local_steps, mask_key, mask_secrets,
    masked_sum, member_nodes, model, multihead_attention_layer, multihead_attention_tensors,
    named_shape, named_view, network_graph, node_scores, non_finite, norm_order, norm_tensors,
    number_kind, onnx_options, open_extent, ordered_dropout, out_of_bound, pairwise_key,
    parameter_coverage, philox_block, philox_key, position_table, prefix, product_cut,
    proof_options, random_round, random_stream, random_subset, recurrent_cell,
    recurrent_cell_tensors, recurrent_layer, recurrent_tensors, repeated_update, robust_options,
    robust_report, role, rolling, round_distribution, round_moments, rounding, row_labels, run,
    running_statistics, safetensors_view, secure_options, secure_participant, secure_round,
    seed_policy, selected_dimension, selection, serial, server_adagrad, server_adam, server_sgd,
    server_step_report, server_yogi, simple_ensemble, submodel, survivor_list, sync_dropout,
    tensor_id, tied_linear_layer, top_k, traffic_bytes, traffic_options, trajectory_similarity,
    unmasking_guard, update_counts, update_front, update_outcome, value_kind, verdict,
    weight_and_bias, weighting, whole_nodes, width_distribution, width_for, width_norms, workload>;
#if defined(_OPENMP)
using types_with_openmp = listed<openmp>;
#endif
using instances =
    listed<basic_index_set<int64_t>, basic_run<int64_t>, dense_tensor<float>,
           element_weighted_average<float>, scalar_traits<float>, selective_average<float>,
           server_optimizer<float, server_sgd>, tensor_view<float>, tensor_views<float>,
           tensors<float>, trajectory<float>, update<float>, view_traits<tensor_view<float>>>;

static_assert(max_rank > 0 && update_front_bytes > 0);

template <class T>
concept concepts =
    averageable<T> || borrowed<T> || executor<T> || forward_function<T, T> || integer_range<T> ||
    mask_generator<T> || scheme<T> || server_rule<T> || viewable<T> || viewable_as<T, T>;

template <class T>
void functions(const T& x) {
  dlpack_tensor<T> also(x);
  also(add_proximal(x), aligned_copy(x), attention(x), average_cohort(x), average_outputs(x),
       batch_norm(x), batch_norm_per_width(x), binding_text(x), bindings_of(x), by_name(x),
       check_description(x), check_front(x), check_reads(x), check_shapes(x), clear_unheld(x),
       client_weight(x), clip_update(x), concat(x), control_change(x), control_options(x),
       conv1d(x), conv2d(x), conv3d(x), conv_transpose1d(x), conv_transpose2d(x),
       conv_transpose3d(x), correct_gradients(x), cut_difference(x), cut_differences(x),
       derive_model(x), derive_widths(x), describe(x), distillation_loss(x), draw(x), draw_dot(x),
       element_weights(x), embedding(x), evenness_of(x), export_dlpack(x), find_coarse_ties(x),
       find_doubts(x), fingerprint(x), first_cover(x), first_cover_bounds(x),
       first_cover_moments(x), flatten(x), format_of(x), fused_attention(x), group_norm(x), gru(x),
       gru_cell(x), held_probabilities(x), initial_deviation(x), inside_heads(x), keep_scale(x),
       kept_kernels(x), layer_norm(x), linear(x), linear_tied(x), local_model(x), lstm(x),
       lstm_cell(x), masked_cross_entropy(x), masked_update(x), model_code(x), most_update_bytes(x),
       multihead_attention(x), name_hash(x), node_norms(x), npy_bytes(x), npy_view(x),
       open_update(x), optimize_keep(x), parameters(x), peek_update(x), permuted(x), philox4x32(x),
       positions(x), prove_description(x), proximal_term(x), random_counts(x), random_values(x),
       read_coverage(x), read_coverage_by_class(x), read_model(x), read_onnx(x),
       read_parameter_coverage(x), read_partial_average(x), read_sets(x), residual_add(x), rnn(x),
       robust_cohort(x), role_text(x), rolling_first_cover(x), rolling_parameter_counts(x),
       rounds_until_chosen(x), rounds_until_chosen_erdos_renyi(x), rounds_until_chosen_in_turn(x),
       rounds_until_chosen_newman_shepp(x), scaler(x), scatter(x), scatter_add(x),
       set_error_handler(x), shared_nodes(x), shared_parameters(x), shuffled(x), similarity_of(x),
       sync_threshold(x), to_text(x), traffic(x), trajectory_objective(x),
       unseen_parameter_probability(x), unseen_probability(x), update_framing(x), upload_words(x),
       verdict_text(x), whole_heads(x), width_scale(x), window_counts(x), window_first_cover(x),
       window_unseen_probabilities(x), with_widths_up_to(x), within(x), write_model(x),
       write_partial_average(x), write_safetensors(x), write_sets(x), write_update(x));
}

int use_names();
int use_names() {
  model net;
  const group_id hidden = net.group("hidden", 4, cut::by_scheme);
  const dimension both = concat({hidden.repeat(2), 3});
  const tensor_id weight = net.tensor("weight", {both, hidden.block(2)});
  linear(net, "fc", {.in = hidden, .out = 2, .bias = bias::none});
  const capacity half_of_it = capacity::ratio(1, 2);
  const draw_key key{.round = 1, .capacity = half_of_it};
  const submodel part = draw(net, rolling{.walk = direction::forward}, key);
  const submodel other = draw(net, prefix{.round_to = rounding::ceil}, key);
  const submodel third = draw(net, simple_ensemble{}, key);
  const submodel fourth = draw(net, random_subset{}, key);
  const selection chosen = part[weight];
  const index_set nodes = index_set::full(4);
  const run first = nodes.runs()[0];
  coverage seen(net);
  seen.record(part);
  seen.end_round();
  parameter_coverage joint(net);
  const evenness even = evenness_of(seen.counts(hidden));
  const cohort_model cohort({.clients = 4, .participation = 1});
  const half h(1.5f);
  const bfloat16 b(1.5f);
  vector<float> values(4);
  const tensor_view<float> view(values.data(), {4});
  const string text = describe(net) + draw_dot(net) + to_text(seen);
  const traffic_bytes bytes = traffic(part);
  const workload work(net);
  selective_average<float> mean(net);
  const tensors<float> memory(part);
  const submodel largest =
      draw(net, top_k(node_norms<float>(net, tensors<float>(net), norm_order::two)), key);
  const vector<binding> uses = bindings_of(net, hidden);
  const vector<doubt> doubts = find_doubts(net);
  const description_proof proof{net};
  const bool is_right = proof.verdict() == verdict::right;
  network_graph graph;
  graph.output(graph.apply("Relu", {graph.parameter("weight", {4})}));
  const derived_description derived = derive_model(graph);
  const description_check checked = check_description(graph, derived.net);
  const round_moments rounds = rounds_until_chosen(4);
  return static_cast<int>(shared_nodes(part, other, hidden) + parameters(third) + chosen.rank() +
                          first.length + even.items + cohort.asked() + h.bits + b.bits +
                          view.rank() + bytes.up + work.count(part) + joint.rounds() + max_rank) +
         static_cast<int>(rounds.mean) +
         static_cast<int>(memory.size() + uses.size() + doubts.size()) +
         static_cast<int>(largest.size()) + is_right + checked.is_right() +
         static_cast<int>(text.size());
}
