# SPDX-License-Identifier: MIT
"""study.toml: which runs there are."""
import hashlib
import math
import re
import tomllib
from dataclasses import dataclass, field

# Options that do not change a result.
_OUTSIDE = {"eval-every", "checkpoint-every"}
# How much work a training image or sequence is to a network, against an image to that of the base.
_WORK = {"lenet": 4, "cnn": 0.05, "pre-resnet18": 200, "char-lstm": 10, "transformer": 10}


class Refusal(Exception):
    """What is wrong with the description, the command line or the machine, for people."""


def _text(value):
    return "true" if value is True else str(value)


@dataclass(frozen=True)
class Run:
    method: str
    seed: int
    options: tuple  # of (name, text), in the order of the description

    @property
    def key(self):
        """Of everything that decides the result."""
        words = [("method", self.method), ("seed", str(self.seed))]
        words += [o for o in self.options if o[0] not in _OUTSIDE]
        lines = "".join(f"{name}={text}\n" for name, text in sorted(words))
        return hashlib.sha256(lines.encode()).hexdigest()[:12]

    @property
    def words(self):
        """The trainer's command line."""
        out = ["--method", self.method, "--seed", str(self.seed)]
        for name, text in self.options:
            out += [f"--{name}"] if text == "true" else [f"--{name}", text]
        return out

    def option(self, name, otherwise):
        return dict(self.options).get(name, otherwise)

    @property
    def reads_text(self):
        return self.option("model", "") in ("char-lstm", "transformer")

    @property
    def units(self):
        """How much there is to train: images, or sequences that are as much work."""
        cohort = math.ceil(int(self.option("clients", 100)) *
                           float(self.option("participation", 0.1)))
        epochs = int(self.option("local-epochs", 1))
        work = _WORK.get(self.option("model", ""), 1) * float(self.option("width", 1)) ** 2
        return (int(self.option("rounds", 192)) * cohort * epochs * work *
                int(self.option("samples", 64)))


@dataclass(frozen=True)
class Setting:
    name: str
    title: str
    methods: tuple
    seeds: tuple
    options: dict


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    repeats: str
    order: int
    settings: tuple
    against: tuple = ()
    across: tuple = ()
    paper: dict = field(default_factory=dict)  # (setting, method) -> (accuracy, deviation, where)

    @property
    def methods(self):
        out = []
        for s in self.settings:
            out += [m for m in s.methods if m not in out]
        return out

    def setting(self, name):
        for s in self.settings:
            if s.name == name:
                return s
        raise Refusal(f"The experiment {self.name} has no setting {name}.")

    def run(self, setting, method, seed):
        return Run(method, seed, tuple((k, _text(v)) for k, v in setting.options.items()
                                       if v != "" and v is not False))


@dataclass(frozen=True)
class Place:
    """A run where an experiment needs it."""
    experiment: Experiment
    setting: Setting
    run: Run

    @property
    def name(self):
        return f"{self.experiment.name}/{self.setting.name}/{self.run.method}/{self.run.seed}"


class Description:
    def __init__(self, text):
        try:
            whole = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise Refusal(f"The description is not TOML: {error}.") from error
        self.experiments = [self._experiment(e, whole.get("base", {}))
                            for e in whole.get("experiment", [])]
        names = [e.name for e in self.experiments]
        for name in names:
            if names.count(name) > 1:
                raise Refusal(f"There are two experiments {name}.")

    @staticmethod
    def _experiment(e, base):
        def checked(table, known, what):
            unknown = set(table) - known
            if unknown:
                raise Refusal(f"{what} has {', '.join(sorted(unknown))}, which nothing reads.")

        if "name" not in e:
            raise Refusal("An experiment has no name.")
        name = e["name"]
        if not re.fullmatch(r"[a-z0-9-]+", name):
            raise Refusal(f"The experiment {name}: a name has small letters, digits and -.")
        checked(e, {"name", "title", "repeats", "order", "methods", "seeds", "options", "against",
                    "across", "paper", "setting"}, f"The experiment {name}")
        settings = []
        for short, s in e.get("setting", {}).items():
            checked(s, {"title", "methods", "seeds", "options"}, f"The setting {name}/{short}")
            settings.append(Setting(short, s.get("title", short),
                                    tuple(s.get("methods", e.get("methods", []))),
                                    tuple(s.get("seeds", e.get("seeds", []))),
                                    {**base, **e.get("options", {}), **s.get("options", {})}))
        out = Experiment(name, e.get("title", name), e.get("repeats", ""), e.get("order", 100),
                         tuple(settings), tuple(map(tuple, e.get("against", []))),
                         tuple(map(tuple, e.get("across", []))),
                         {(p[0], p[1]): tuple(p[2:]) for p in e.get("paper", [])})
        for pair in out.across:
            for setting in pair:
                out.setting(setting)
        for setting, _ in out.paper:
            out.setting(setting)
        return out

    def experiment(self, name):
        for e in self.experiments:
            if e.name == name:
                return e
        raise Refusal(f"There is no experiment {name}.")

    def places(self):
        """Every run where it is needed, in the order of the description."""
        return [Place(e, s, e.run(s, method, seed)) for e in self.experiments
                for s in e.settings for seed in s.seeds for method in s.methods]

    def owners(self):
        """Each run once, by its key: the first experiment that needs it has it in its results."""
        out = {}
        for place in self.places():
            out.setdefault(place.run.key, place)
        return out

    def queue(self):
        """Each run once, in the order in which they are worth running: the first seed of all
        settings of an experiment, then the second, and a later seed counts as much as the first
        seed of an experiment four places further down. So an early end leaves whole pairs."""
        def rank(place):
            return place.experiment.order + 4 * place.setting.seeds.index(place.run.seed)
        best = {}
        for place in sorted(self.places(), key=rank):
            best.setdefault(place.run.key, place)
        return list(best.values())
