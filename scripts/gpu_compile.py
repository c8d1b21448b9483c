#!/usr/bin/env python3
"""Compiles every GPU kernel for several architectures with NVIDIA's run-time compiler.

    python3 scripts/gpu_compile.py                    sm_75, sm_80, sm_90 and sm_100
    python3 scripts/gpu_compile.py sm_90 --module finish

Needs no GPU and no driver. Without --nvrtc FILE, it installs the compiler from PyPI (90 MB) in a
virtual environment below target/. It prints registers, shared memory, stack and spills of every
kernel, and fails if a module does not compile or a kernel spills more than --spills BYTES. Sources
and options are those of gpu/src: module.rs lists the modules, cuda/nvrtc.rs the options.
"""

import argparse
import ctypes
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = "nvidia-cuda-nvrtc-cu12==12.9.86"
ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100"]

# Stores and loads of registers that did not fit, in bytes per thread. A few bytes outside of loops,
# which the compiler trades for more threads, cost nothing.
SPILL_BYTES_MAX = 32


def installed():
    """The path of the compiler, which is installed if it is not there."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    folder = target / "gpu-venv"
    found = list(folder.glob("lib/python*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))
    if not found:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", PACKAGE], check=True)
        found = list(folder.glob("lib/python*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))
    return found[0]


def modules():
    """The name and the text of every module of module.rs."""
    text = (ROOT / "gpu/src/module.rs").read_text()
    included = re.compile(r'include_str!\("([^"]+)"\)')
    read = lambda name: (ROOT / "gpu/src" / name).read_text()
    common = read(included.search(text)[1])
    listed = text.split("pub const MODULES")[1].split("];")[0]
    for entry in listed.split("Module {")[1:]:
        name = re.search(r'name: "(\w+)"', entry)[1]
        yield name, common + "\n" + "".join(read(path) for path in included.findall(entry))


def options():
    """The options of the compiler beside the architecture."""
    text = (ROOT / "gpu/src/cuda/nvrtc.rs").read_text()
    return re.findall(r'"(-[^"]+)"', re.search(r"const OPTIONS: [^=]+= \[(.*?)\];", text)[1])


def compiled(nvrtc, name, text, architecture):
    """Compiles a module to a cubin: whether that succeeds, and the log with numbers."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    code = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None
    )
    if code:
        return False, f"nvrtcCreateProgram fails with {code}"
    # A module need not use every function that the sources share.
    quiet = "--diag-suppress=177"
    given = [f"--gpu-architecture={architecture}", *options(), "--ptxas-options=-v", quiet]
    array = (ctypes.c_char_p * len(given))(*[option.encode() for option in given])
    code = nvrtc.nvrtcCompileProgram(program, len(given), array)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(size.value, 1))
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code == 0, log.value.decode()


def numbers(log):
    """Registers, shared memory, stack and spills of every kernel, from the log."""
    found, kernel = {}, None
    for line in log.splitlines():
        if name := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = found.setdefault(name[1], {"shared": 0})
        elif kernel is None:
            continue
        elif sizes := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            stack, stores, loads = map(int, sizes.groups())
            kernel |= {"stack": stack, "spills": stores + loads}
        elif registers := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            kernel |= {"registers": int(registers[1]), "shared": int(shared[1]) if shared else 0}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("architectures", nargs="*", default=ARCHITECTURES, metavar="sm_XX")
    parser.add_argument("--module", action="append", help="only this module; may be repeated")
    parser.add_argument("--nvrtc", type=pathlib.Path, help="the compiler: a path of libnvrtc.so")
    parser.add_argument("--spills", type=int, default=SPILL_BYTES_MAX, help="most bytes of spills")
    arguments = parser.parse_args()
    nvrtc = ctypes.CDLL(str(arguments.nvrtc or installed()))
    print("registers / shared memory / stack / spills, the last three in bytes\n")
    width = 30
    print(f"{'kernel':{width}}" + "".join(f"{name:>24}" for name in arguments.architectures))
    failures = []
    for name, text in modules():
        if arguments.module and name not in arguments.module:
            continue
        table = {}
        for architecture in arguments.architectures:
            succeeded, log = compiled(nvrtc, name, text, architecture)
            if not succeeded:
                failures.append(f"{name} does not compile for {architecture}:\n{log}")
                continue
            for kernel, found in numbers(log).items():
                table.setdefault(kernel, {})[architecture] = found
                if found["spills"] > arguments.spills:
                    failures.append(
                        f"{kernel} spills {found['spills']} bytes on {architecture}, "
                        f"{arguments.spills} are allowed"
                    )
            # Warnings, beside the lines with numbers.
            warnings = [line for line in log.splitlines() if "warning" in line]
            failures += [f"{name} on {architecture}: {line}" for line in warnings]
        for kernel, columns in sorted(table.items()):
            cells = []
            for architecture in arguments.architectures:
                found = columns.get(architecture)
                keys = ["registers", "shared", "stack", "spills"]
                cells.append(" / ".join(str(found[key]) for key in keys) if found else "-")
            print(f"{kernel:{width}}" + "".join(f"{cell:>24}" for cell in cells))
    if failures:
        sys.exit("\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
