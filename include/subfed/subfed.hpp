// SPDX-License-Identifier: MIT
/// The primitives: index sets, schemes, models, slice, scatter, averages, coverage. systems.hpp and
/// coverage_statistics.hpp have what stands on them; adaptors to foreign tensor types are in
/// subfed/adapt/, each included by who uses it.
#pragma once

#include <subfed/average_cohort.hpp>
#include <subfed/average_options.hpp>
#include <subfed/capacity.hpp>
#include <subfed/config.hpp>
#include <subfed/cost.hpp>
#include <subfed/coverage.hpp>
#include <subfed/describe.hpp>
#include <subfed/draw.hpp>
#include <subfed/error.hpp>
#include <subfed/evenness.hpp>
#include <subfed/executor.hpp>
#include <subfed/held_elements.hpp>
#include <subfed/index_set.hpp>
#include <subfed/layers.hpp>
#include <subfed/layers/attention.hpp>
#include <subfed/layers/convolution.hpp>
#include <subfed/layers/embedding.hpp>
#include <subfed/layers/joints.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/layers/normalization.hpp>
#include <subfed/layers/recurrent.hpp>
#include <subfed/model.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/philox.hpp>
#include <subfed/scalar.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/block.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/site.hpp>
#include <subfed/selection.hpp>
#include <subfed/selective_average.hpp>
#include <subfed/slice.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>
#include <subfed/version.hpp>
