// SPDX-License-Identifier: MIT
/// How each method is created; one function per file of this folder.
#pragma once

#include "../method.hpp"

namespace trainer::methods {

using made = std::unique_ptr<method>;

made fedrolex(const options& settings, const architecture& described);
made heterofl(const options& settings, const architecture& described);
made federated_dropout(const options& settings, const architecture& described);
made fjord(const options& settings, const architecture& described);
made feddrop(const options& settings, const architecture& described);
made unidrop(const options& settings, const architecture& described);
made ensemble(const options& settings, const architecture& described);
made fedavg(const options& settings, const architecture& described);
made fedprox(const options& settings, const architecture& described);
made scaffold(const options& settings, const architecture& described);

}  // namespace trainer::methods
