"""LLVM IR -> machine code of a processor, by LLVM.

Imported only if machine code is not on disk, or LLVM has to load it: LLVM takes long to load.
"""

import contextlib
import functools
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from lshdup.kernels.native import cache, images, pack

#: Processes that compile at the same time. One kernel takes half the time of all that `pairs`
#: needs, so more of them would wait for that one.
_MOST_PROCESSES = 3

_PROGRAM = """import json, sys
sys.path[:], sys.dont_write_bytecode, sys.pycache_prefix = json.loads(sys.argv[1])
from lshdup.kernels.native import machine_code
machine_code.store(sys.argv[2:])"""


def target(triple: str, **options: Any) -> Any:
    """Return the target machine of a triple such as "x86_64-unknown-linux-gnu"."""
    _start(triple == llvm.get_process_triple())
    return llvm.Target.from_triple(triple).create_target_machine(opt=3, **options)


@functools.cache
def _start(is_native: bool) -> None:
    """Make targets known to LLVM: that of this process, or all, which takes longer."""
    if is_native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


@functools.cache
def this_machine() -> Any:
    """Return the target machine of this process, with all features of its processor."""
    triple = llvm.get_process_triple()
    options = {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}
    if images.fit(triple):
        return target(triple, reloc="pic", codemodel="small", **options)
    reloc = "static" if triple.startswith("x86") else "default"
    return target(triple, reloc=reloc, codemodel="jitdefault", jit=True, **options)


def object_code(ir: str, machine: Any) -> bytes:
    """Return the object code of a module without a target, optimised for a target machine."""
    module = llvm.parse_assembly(ir)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    optimise(module, machine, for_machine=True)
    code: bytes = machine.emit_object(module)
    return code


def optimise(module: Any, machine: Any, *, for_machine: bool) -> None:
    """Optimise a module in place, with or without what depends on the width of vectors."""
    options = llvm.create_pipeline_tuning_options(3 if for_machine else 2)
    options.loop_vectorization = options.slp_vectorization = for_machine
    options.loop_interleaving = options.loop_unrolling = for_machine
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def load(code: bytes, symbol: str) -> int:
    """Let LLVM load object code into this process; return the address of a symbol."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    return address


@functools.cache
def _engine() -> Any:
    machine = target(llvm.get_process_triple(), jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def compile_ir(ir: str, symbol: str) -> bytes:
    """Return the machine code of a kernel: an image, or object code where images do not fit."""
    code = object_code(ir, this_machine())
    return images.link(code, symbol) or code


def store(symbols: Iterable[str]) -> None:
    """Compile and store packed kernels."""
    version = cache.version_of(pack.pack_compiler() or "")
    for symbol in symbols:
        cache.write(symbol, version, compile_ir(pack.packed_kernels()[symbol], symbol))


def store_together(symbols: Iterable[str], processes: int) -> None:
    """Compile and store the packed kernels that the cache lacks, in several processes.

    Threads would wait for each other: llvmlite lets one at a time into LLVM. A process that fails
    leaves its share to the call that needs it.
    """
    if not cache.can_write():
        return
    kernels, version = pack.packed_kernels(), cache.version_of(pack.pack_compiler() or "")
    missing = [each for each in symbols if each in kernels and cache.read(each, version) is None]
    shares: list[list[str]] = [[] for _ in range(min(processes, _MOST_PROCESSES))]
    for symbol in sorted(missing, key=lambda each: -len(kernels[each])):
        min(shares, key=lambda share: sum(len(kernels[each]) for each in share)).append(symbol)
    # Not the current folder, where a file may be named like a module.
    import_path = [str(Path(__file__).parents[3]), *filter(None, sys.path)]
    settings = json.dumps([import_path, sys.dont_write_bytecode, sys.pycache_prefix])
    started = []
    for share in filter(None, shares[1:]):
        with contextlib.suppress(OSError):  # no more processes are allowed
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, settings, *share],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            started.append(process)
    store(shares[0])
    for process in started:
        process.wait()
