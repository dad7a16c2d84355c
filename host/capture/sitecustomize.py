"""Start-up hook of `tracemend capture run`: decides whether this Python process registers with dynolog.

libkineto registers every process that imports torch with KINETO_USE_DAEMON set. Launchers hand the variable on under another name,
helpers lose it, and all others, when they import torch, also import torch.profiler: that is what counts optimizer steps, without
which an iteration capture falls back to time.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

_VARIABLE = "KINETO_USE_DAEMON"
_KEPT = "TRACEMEND_KINETO_USE_DAEMON"
_LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "torch.distributed.elastic", "torch.distributed.launcher",
                     "accelerate.commands.launch", "accelerate.commands.accelerate_cli", "deepspeed.launcher")
_LAUNCHER_PROGRAMS = ("torchrun", "accelerate", "deepspeed", "horovodrun")
_LAUNCHER_FILES = ("torch/distributed/run.py", "torch/distributed/launch.py")
_HELPER_MODULES = ("pip", "ensurepip", "venv", "virtualenv", "torch._inductor.compile_worker", "torch.utils.collect_env")
_HELPER_PROGRAMS = ("pip", "pip3", "rocm-sdk", "ninja", "wandb", "tensorboard")
_HELPER_CODE = ("multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_tracker",
                "multiprocessing.semaphore_tracker", "loky.backend")
_WITH_VALUE = "WX"


def _command():
    """What Python was told to run: (kind, text), kind one of module, code, script, none. Only this, never the script's own arguments."""
    words = list(getattr(sys, "orig_argv", None) or [])
    if not words:
        try:
            with open("/proc/self/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
        except OSError:
            return "none", ""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--check-hash-based-pycs":
            at += 2
            continue
        if word.startswith("--"):
            at += 1
            continue
        if not word.startswith("-") or word == "-":
            return "script", word
        for place, letter in enumerate(word[1:], 2):
            if letter in "mc":
                rest = word[place:] or (words[at + 1] if at + 1 < len(words) else "")
                return ("module" if letter == "m" else "code"), rest
            if letter in _WITH_VALUE:
                if not word[place:]:
                    at += 1
                break
        at += 1
    return "none", ""


def _is_module(name, known):
    return any(name == one or name.startswith(one + ".") for one in known)


def _role():
    kind, text = _command()
    if kind == "module":
        if _is_module(text, _LAUNCHER_MODULES):
            return "launcher"
        return "helper" if _is_module(text, _HELPER_MODULES) else "worker"
    if kind == "code":
        return "helper" if any(one in text for one in _HELPER_CODE) else "worker"
    if kind == "script":
        name, path = os.path.basename(text), os.path.realpath(text).replace(os.sep, "/")
        if name in _LAUNCHER_PROGRAMS or path.endswith(_LAUNCHER_FILES):
            return "launcher"
        return "helper" if name in _HELPER_PROGRAMS or name.startswith("pip3.") else "worker"
    return "worker"


class _AfterTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports torch.profiler right after torch."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        self._loader = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            importlib.import_module("torch.profiler")
        except Exception as error:
            sys.stderr.write("tracemend: torch.profiler cannot be imported, captures go by time: %r\n" % (error,))


def _decide():
    value = os.environ.get(_VARIABLE) or os.environ.get(_KEPT)
    if not value:
        return
    role = _role()
    if role == "launcher":
        os.environ[_KEPT] = value
        os.environ.pop(_VARIABLE, None)
    elif role == "helper":
        os.environ.pop(_VARIABLE, None)
        os.environ.pop(_KEPT, None)
    else:
        os.environ[_VARIABLE] = value
        sys.meta_path.insert(0, _AfterTorch())


def _chain():
    """Runs the sitecustomize that would have run without this one."""
    own = os.path.dirname(os.path.abspath(__file__))
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _decide()
except Exception as error:
    sys.stderr.write("tracemend: the start-up hook failed, nothing is changed: %r\n" % (error,))
_chain()
