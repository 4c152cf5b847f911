"""Instructions of processors that Python has no word for, as functions that kernels call."""

import numpy as np

from mpi_compress.kernels import inlined_kernel, intrinsic


@inlined_kernel
def bits_of(value):
    """The bits of a float64, as uint64."""
    return np.float64(value).view(np.uint64)


@inlined_kernel
def float_of(bits):
    """The float64 of some bits, uint64."""
    return np.uint64(bits).view(np.float64)


@intrinsic
def leading_zeros(typing, n):
    """Zeros above the highest 1 of n, uint64; 64 for 0."""
    from numba.core import cgutils, types

    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctlz(args[0], cgutils.false_bit)


@intrinsic
def trailing_zeros(typing, n):
    """Zeros below the lowest 1 of n, uint64; 64 for 0."""
    from numba.core import cgutils, types

    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.cttz(args[0], cgutils.false_bit)


@intrinsic
def high_product(typing, a, b):
    """The upper 64 of the 128 bits of a·b, both uint64."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.IntType(128)
        a, b = (builder.zext(each, double) for each in arguments)
        return builder.trunc(builder.lshr(builder.mul(a, b), double(64)), word)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def fma(typing, a, b, c):
    """a·b + c, rounded once."""
    from numba import types

    return types.float64(types.float64, types.float64, types.float64), lambda context, builder, signature, args: builder.fma(*args)


@intrinsic
def fetch(typing, v, j):
    """Ask for the cache line of v_j, which will be read soon."""
    from llvmlite import ir
    from numba.core import cgutils, types

    def generate(context, builder, signature, arguments):
        at = builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])
        index, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, index, index, index])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(at, byte), index(0), index(3), index(1)])
        return context.get_dummy_value()

    return types.void(v, types.uint64), generate


@intrinsic
def replace(typing, array, index, expected, new):
    """Set array[index] to `new` if it holds `expected`, bit for bit. Returns whether it did."""
    from llvmlite import ir
    from numba.core import cgutils, types

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, view, [arguments[1]], wraparound=False)
        word = ir.IntType(64)
        place = builder.bitcast(place, word.as_pointer())
        old, to = (builder.bitcast(value, word) for value in arguments[2:])
        done = builder.extract_value(builder.cmpxchg(place, old, to, "seq_cst", "seq_cst"), 1)
        return builder.zext(done, context.get_value_type(types.boolean))

    return types.boolean(array, types.uintp, types.float64, types.float64), generate
