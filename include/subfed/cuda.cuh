// SPDX-License-Identifier: MIT
/// All CUDA headers.
#pragma once

#include <subfed/cuda/average_cohort.cuh>
#include <subfed/cuda/device_view.hpp>
#include <subfed/cuda/element.cuh>
#include <subfed/cuda/error.cuh>
#include <subfed/cuda/on_device.cuh>
#include <subfed/cuda/selective_average.cuh>
#include <subfed/cuda/slice.cuh>
#include <subfed/cuda/workspace.cuh>
