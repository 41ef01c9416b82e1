"""LLVM: from IR to machine code of a processor, and into this process."""

import functools
from typing import Any

import llvmlite
import llvmlite.binding as llvm


def machine_name() -> str:
    """Return what machine code of this process depends on: processor and compiler."""
    features = llvm.get_host_cpu_features().flatten()
    return (
        f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features} "
        f"llvmlite {llvmlite.__version__}"
    )


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
    return target(
        triple,
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        reloc="static" if triple.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


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
    """Load object code into this process; return the address of a symbol."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    return address


@functools.cache
def _engine() -> Any:
    machine = target(llvm.get_process_triple(), jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
