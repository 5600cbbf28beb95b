// SPDX-License-Identifier: MIT
/// Models, index sets and submodels as bytes, for pickle and for messages between servers.
#pragma once

#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace subfed_python {

std::string model_bytes(const subfed::model& net);
/// Throws  error for what model_bytes would not have written.
subfed::model read_model(std::string_view bytes);

/// The nodes held and those that take part, where they come from, and a number that tells the models
/// of most programs apart; not the model itself.
std::string submodel_bytes(const subfed::submodel& sub);
/// Throws  error for another model, and for what submodel_bytes would not have written.
subfed::submodel read_submodel(const subfed::model& net, std::string_view bytes);

std::string index_set_bytes(const subfed::index_set& set);
subfed::index_set read_index_set(std::string_view bytes);

}  // namespace subfed_python
