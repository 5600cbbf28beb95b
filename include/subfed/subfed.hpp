// SPDX-License-Identifier: MIT
/// The primitives: index sets, schemes, models, slice, scatter, averages, costs, coverage of nodes.
/// coverage.hpp, systems.hpp and messages.hpp have what is built on them; adaptors to foreign tensor
/// types are in subfed/adapt/, to be included one by one.
#pragma once

#include <subfed/average.hpp>
#include <subfed/capacity.hpp>
#include <subfed/config.hpp>
#include <subfed/cost.hpp>
#include <subfed/coverage/evenness.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/describe.hpp>
#include <subfed/dimension.hpp>
#include <subfed/draw.hpp>
#include <subfed/element_format.hpp>
#include <subfed/error.hpp>
#include <subfed/executor.hpp>
#include <subfed/index_set.hpp>
#include <subfed/layers.hpp>
#include <subfed/model.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/philox.hpp>
#include <subfed/scalar.hpp>
#include <subfed/scatter.hpp>
#include <subfed/scheme.hpp>
#include <subfed/schemes.hpp>
#include <subfed/selection.hpp>
#include <subfed/slice.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/tensors.hpp>
#include <subfed/untyped_view.hpp>
#include <subfed/version.hpp>
#include <subfed/view_traits.hpp>
