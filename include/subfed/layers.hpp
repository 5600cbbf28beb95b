// SPDX-License-Identifier: MIT
/// Registers the tensors of standard layers under PyTorch's names and shapes.
#pragma once

#include <subfed/layers/attention.hpp>
#include <subfed/layers/connections.hpp>
#include <subfed/layers/convolution.hpp>
#include <subfed/layers/embedding.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/layers/normalization.hpp>
#include <subfed/layers/recurrent.hpp>
