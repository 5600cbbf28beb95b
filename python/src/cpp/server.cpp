// SPDX-License-Identifier: MIT
/// Server optimisers: SGD with momentum, Adagrad, Adam, Yogi.
#include <subfed/systems/server_optimizer.hpp>

#include <pybind11/numpy.h>

#include "tensors.hpp"

#include <mutex>

namespace subfed_python {

namespace {

template <class Rule>
class server_step {
 public:
  server_step(const subfed::model& net, const Rule& rule) : net_(net), steps_(net, rule) {}

  void begin(const py::object& globals) {
    const tensor_list<const void> from(net_, globals, "server optimiser", "global");
    const py::gil_scoped_release unlocked;
    const std::lock_guard locked(lock_);
    steps_.begin(from.views());
  }
  py::tuple finish(subfed::held_elements held, const py::object& globals) {
    const tensor_list<void> to(net_, globals, "server optimiser", "global");
    subfed::server_step_report report;
    {
      const py::gil_scoped_release unlocked;
      const std::lock_guard locked(lock_);
      report = steps_.finish(held, to.views());
    }
    to.bump_versions();
    static PyObject* const type =
        py::object(py::module_::import("collections")
                       .attr("namedtuple")("ServerStepReport", py::make_tuple("moved", "still"),
                                           "module"_a = "subfed"))
            .release()
            .ptr();
    return py::reinterpret_borrow<py::object>(type)(report.moved, report.still);
  }
  /// A view that writes, which keeps `self`.
  static py::array moment(const py::object& self, const py::object& tensor, bool second) {
    auto& own = self.cast<server_step&>();
    const subfed::tensor_id t = to_tensor(own.net_, tensor);
    const auto values = second ? own.steps_.second_moment(t) : own.steps_.first_moment(t);
    const auto& info = own.net_[t];
    std::vector<py::ssize_t> shape(info.extents.begin(), info.extents.end());
    if (!info.is_parameter()) shape = {0};
    return py::array(py::dtype::of<double>(), std::move(shape), values.data(), self);
  }

 private:
  subfed::model net_;
  std::mutex lock_;
  subfed::server_optimizer<void, Rule> steps_;
};

template <class Rule, class Init>
void add_rule(py::module_& m, const char* name, const char* text, Init init) {
  using step = server_step<Rule>;
  py::class_<step> c(m, name, text);
  init(c);
  c.def("begin", &step::begin, "globals"_a, "Keeps the values that the round starts from.")
      .def("finish", &step::finish, "held"_a, "globals"_a,
           "Takes the average that stands in `globals` and writes old + step(average - old), in "
           "place. held: what the average gave a value, HeldElements.")
      .def(
          "first_moment",
          [](const py::object& self, const py::object& tensor) {
            return step::moment(self, tensor, false);
          },
          "tensor"_a, "m of a parameter: the memory itself, for checkpoints.")
      .def(
          "second_moment",
          [](const py::object& self, const py::object& tensor) {
            return step::moment(self, tensor, true);
          },
          "tensor"_a, "v of a parameter: the memory itself, for checkpoints.");
}

}  // namespace

void bind_server(py::module_& m) {
  using subfed::model;
  add_rule<subfed::server_sgd>(
      m, "ServerSGD", "m = momentum m + delta; x += lr m: FedAvgM.", [](auto& c) {
        using step = server_step<subfed::server_sgd>;
        c.def(py::init([](const model& net, double lr, double momentum) {
                return std::make_unique<step>(net, subfed::server_sgd{lr, momentum});
              }),
              "net"_a, "lr"_a = 1.0, "momentum"_a = 0.0);
      });
  add_rule<subfed::server_adagrad>(m, "ServerAdagrad", "FedAdagrad.", [](auto& c) {
    using step = server_step<subfed::server_adagrad>;
    c.def(py::init([](const model& net, double lr, double beta1, double tau) {
            return std::make_unique<step>(net, subfed::server_adagrad{lr, beta1, tau});
          }),
          "net"_a, "lr"_a = 0.1, "beta1"_a = 0.0, "tau"_a = 1e-3);
  });
  add_rule<subfed::server_adam>(m, "ServerAdam", "FedAdam, without bias correction.", [](auto& c) {
    using step = server_step<subfed::server_adam>;
    c.def(py::init([](const model& net, double lr, double beta1, double beta2, double tau) {
            return std::make_unique<step>(net, subfed::server_adam{lr, beta1, beta2, tau});
          }),
          "net"_a, "lr"_a = 0.1, "beta1"_a = 0.9, "beta2"_a = 0.99, "tau"_a = 1e-3);
  });
  add_rule<subfed::server_yogi>(m, "ServerYogi", "FedYogi.", [](auto& c) {
    using step = server_step<subfed::server_yogi>;
    c.def(py::init([](const model& net, double lr, double beta1, double beta2, double tau) {
            return std::make_unique<step>(net, subfed::server_yogi{lr, beta1, beta2, tau});
          }),
          "net"_a, "lr"_a = 0.1, "beta1"_a = 0.9, "beta2"_a = 0.99, "tau"_a = 1e-3);
  });
}

}  // namespace subfed_python
