"""LLVM code that Python calls (see `entries`), with the memory layout of numpy's arrays."""

from __future__ import annotations

# offsets in PyArrayObject, the same in numpy 1 and 2 (numpy/ndarraytypes.h); flags C_CONTIGUOUS and ALIGNED
OB_TYPE, DATA, ND, DIMENSIONS, DESCR, ARRAY_FLAGS = 8, 16, 24, 32, 56, 64
FLOAT_VALUE = 16  # offset in PyFloatObject
BYTE_ORDER, TYPE_NUMBER = 26, 28  # offsets in PyArray_Descr: numbers are native where the order is "="
DOUBLE = 12  # NPY_DOUBLE
ARRAY_REQUIREMENTS = 0x1 | 0x100
PYARRAY_NEW = 93  # index of PyArray_New in numpy's API table
PLAIN = f"i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null"  # a new array of doubles in C order
METH_FASTCALL = 0x80
# Layout of a descriptor. Header: core, model, number of inputs, number of outputs, total size of the inputs, class of
# the result (0 for a single array), function called for unsupported arguments (0 for none). Each input: its size, its
# number of axes (0: a Python float), its first and its last axis. Each output: its number of axes and two axes.
HEADER, INPUT, OUTPUT = 7, 4, 3

SOURCE = f"""
@env = global [9 x i64] zeroinitializer

define ptr @call(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %dp = getelementptr i8, ptr %self, i64 {DATA}
  %d = load ptr, ptr %dp
  %d1 = getelementptr i64, ptr %d, i64 1
  %d2 = getelementptr i64, ptr %d, i64 2
  %d3 = getelementptr i64, ptr %d, i64 3
  %d4 = getelementptr i64, ptr %d, i64 4
  %d5 = getelementptr i64, ptr %d, i64 5
  %core = load ptr, ptr %d
  %model = load ptr, ptr %d1
  %nin = load i64, ptr %d2
  %nout = load i64, ptr %d3
  %totalin = load i64, ptr %d4
  %kindof = load ptr, ptr %d5
  %e1 = getelementptr i64, ptr @env, i64 1
  %e2 = getelementptr i64, ptr @env, i64 2
  %e3 = getelementptr i64, ptr @env, i64 3
  %e4 = getelementptr i64, ptr @env, i64 4
  %e5 = getelementptr i64, ptr @env, i64 5
  %e6 = getelementptr i64, ptr @env, i64 6
  %arraytype = load i64, ptr @env
  %none = load ptr, ptr %e1
  %new = load ptr, ptr %e2
  %newtuple = load ptr, ptr %e3
  %setitem = load ptr, ptr %e4
  %incref = load ptr, ptr %e5
  %decref = load ptr, ptr %e6
  %x = alloca double, i64 %totalin, align 64
  %arrays = alloca ptr, i64 %nout
  %ys = alloca ptr, i64 %nout
  %count = icmp eq i64 %nargs, %nin
  br i1 %count, label %argument, label %refuse

argument:
  %i = phi i64 [0, %entry], [%i1, %taken]
  %at = phi i64 [0, %entry], [%at1, %taken]
  %more = icmp slt i64 %i, %nin
  br i1 %more, label %look, label %run
look:
  %ii = mul i64 %i, {INPUT}
  %li = add i64 %ii, {HEADER}
  %lp = getelementptr i64, ptr %d, i64 %li
  %n = load i64, ptr %lp
  %l1p = getelementptr i64, ptr %lp, i64 1
  %axes_wanted = load i64, ptr %l1p
  %l2p = getelementptr i64, ptr %lp, i64 2
  %first_wanted = load i64, ptr %l2p
  %l3p = getelementptr i64, ptr %lp, i64 3
  %last_wanted = load i64, ptr %l3p
  %op = getelementptr ptr, ptr %args, i64 %i
  %o = load ptr, ptr %op
  %typep = getelementptr i8, ptr %o, i64 {OB_TYPE}
  %type = load i64, ptr %typep
  %istype = icmp eq i64 %type, %arraytype
  br i1 %istype, label %inside, label %number_alone
number_alone:
  %e8 = getelementptr i64, ptr @env, i64 8
  %floattype = load i64, ptr %e8
  %isfloat = icmp eq i64 %type, %floattype
  %wants_one = icmp eq i64 %axes_wanted, 0
  %right_number = and i1 %isfloat, %wants_one
  br i1 %right_number, label %value, label %refuse
value:
  %vp = getelementptr i8, ptr %o, i64 {FLOAT_VALUE}
  %bits = load i64, ptr %vp
  %vt = getelementptr double, ptr %x, i64 %at
  store i64 %bits, ptr %vt
  %vexponent = and i64 %bits, {0x7FF0000000000000}
  %vfinite = icmp ne i64 %vexponent, {0x7FF0000000000000}
  br i1 %vfinite, label %taken, label %refuse
inside:
  %ndp = getelementptr i8, ptr %o, i64 {ND}
  %nd = load i32, ptr %ndp
  %nd64 = zext i32 %nd to i64
  %same_axes = icmp eq i64 %nd64, %axes_wanted
  %some_axes = icmp ne i64 %nd64, 0
  %right_axes = and i1 %same_axes, %some_axes
  br i1 %right_axes, label %shape, label %refuse
shape:
  %dimp = getelementptr i8, ptr %o, i64 {DIMENSIONS}
  %dim = load ptr, ptr %dimp
  %len = load i64, ptr %dim
  %before = add i64 %nd64, -1
  %lastp = getelementptr i64, ptr %dim, i64 %before
  %lastlen = load i64, ptr %lastp
  %c01 = icmp eq i64 %len, %first_wanted
  %c02 = icmp eq i64 %lastlen, %last_wanted
  %c1 = and i1 %c01, %c02
  %descrp = getelementptr i8, ptr %o, i64 {DESCR}
  %descr = load ptr, ptr %descrp
  %orderp = getelementptr i8, ptr %descr, i64 {BYTE_ORDER}
  %order = load i8, ptr %orderp
  %kindp = getelementptr i8, ptr %descr, i64 {TYPE_NUMBER}
  %kind = load i32, ptr %kindp
  %native = icmp eq i8 %order, {ord("=")}
  %isdouble = icmp eq i32 %kind, {DOUBLE}
  %c2 = and i1 %native, %isdouble
  %flagp = getelementptr i8, ptr %o, i64 {ARRAY_FLAGS}
  %flag = load i32, ptr %flagp
  %wanted = and i32 %flag, {ARRAY_REQUIREMENTS}
  %c3 = icmp eq i32 %wanted, {ARRAY_REQUIREMENTS}
  %c12 = and i1 %c1, %c2
  %c = and i1 %c12, %c3
  br i1 %c, label %copy, label %refuse
copy:
  %datap = getelementptr i8, ptr %o, i64 {DATA}
  %data = load ptr, ptr %datap
  %to = getelementptr double, ptr %x, i64 %at
  br label %number
number:
  %k = phi i64 [0, %copy], [%k1, %moved]
  %huge = phi i64 [0, %copy], [%huge1, %moved]
  %mk = icmp slt i64 %k, %n
  br i1 %mk, label %moved, label %checked
moved:
  %sp = getelementptr i64, ptr %data, i64 %k
  %s = load i64, ptr %sp, align 8
  %tp = getelementptr i64, ptr %to, i64 %k
  store i64 %s, ptr %tp, align 8
  %exponent = and i64 %s, {0x7FF0000000000000}
  %plus = add i64 %exponent, {0x0010000000000000}
  %huge1 = or i64 %huge, %plus
  %k1 = add i64 %k, 1
  br label %number
checked:
  %finite = icmp sge i64 %huge, 0
  br i1 %finite, label %taken, label %refuse
taken:
  %i1 = add i64 %i, 1
  %at1 = add i64 %at, %n
  br label %argument

run:
  %lis = mul i64 %nin, {INPUT}
  %lo = add i64 %lis, {HEADER}
  %outs = getelementptr i64, ptr %d, i64 %lo
  br label %make
make:
  %j = phi i64 [0, %run], [%j1, %made]
  %mj = icmp slt i64 %j, %nout
  br i1 %mj, label %new_one, label %compute
new_one:
  %jo = mul i64 %j, {OUTPUT}
  %out = getelementptr i64, ptr %outs, i64 %jo
  %axes64 = load i64, ptr %out
  %axes = trunc i64 %axes64 to i32
  %dims = getelementptr i64, ptr %out, i64 1
  %array = call ptr %new(i64 %arraytype, i32 %axes, ptr %dims, {PLAIN})
  %bad = icmp eq ptr %array, null
  br i1 %bad, label %release, label %made
made:
  %yp = getelementptr i8, ptr %array, i64 {DATA}
  %y = load ptr, ptr %yp
  %keep = getelementptr ptr, ptr %arrays, i64 %j
  store ptr %array, ptr %keep
  %to_fill = getelementptr ptr, ptr %ys, i64 %j
  store ptr %y, ptr %to_fill
  %j1 = add i64 %j, 1
  br label %make

compute:
  %good = call i1 %core(ptr %model, ptr %x, ptr %ys)
  br i1 %good, label %give, label %release
give:
  %several = icmp ne ptr %kindof, null
  br i1 %several, label %pack, label %alone
alone:
  %only = load ptr, ptr %arrays
  ret ptr %only
pack:
  %tuple = call ptr %newtuple(ptr %kindof, i64 %nout)
  %badt = icmp eq ptr %tuple, null
  br i1 %badt, label %release, label %next
next:
  %i2 = phi i64 [0, %pack], [%i3, %set]
  %m2 = icmp slt i64 %i2, %nout
  br i1 %m2, label %set, label %whole
set:
  %fromp = getelementptr ptr, ptr %arrays, i64 %i2
  %from = load ptr, ptr %fromp
  %kept = call i32 %setitem(ptr %tuple, i64 %i2, ptr %from)
  %i3 = add i64 %i2, 1
  br label %next
whole:
  ret ptr %tuple

release:
  %had = phi i64 [%j, %new_one], [%nout, %compute], [%nout, %pack]
  %failed = phi i1 [true, %new_one], [false, %compute], [true, %pack]
  br label %each
each:
  %r = phi i64 [0, %release], [%r1, %drop]
  %mr = icmp slt i64 %r, %had
  br i1 %mr, label %drop, label %dropped
drop:
  %rp = getelementptr ptr, ptr %arrays, i64 %r
  %old = load ptr, ptr %rp
  call void %decref(ptr %old)
  %r1 = add i64 %r, 1
  br label %each
dropped:
  br i1 %failed, label %error, label %refuse
error:
  ret ptr null
refuse:
  %d6 = getelementptr i64, ptr %d, i64 6
  %other = load ptr, ptr %d6
  %no_other = icmp eq ptr %other, null
  br i1 %no_other, label %nothing, label %elsewhere
elsewhere:
  %e7 = getelementptr i64, ptr @env, i64 7
  %vectorcall = load ptr, ptr %e7
  %answer = call ptr %vectorcall(ptr %other, ptr %args, i64 %nargs, ptr null)
  ret ptr %answer
nothing:
  call void %incref(ptr %none)
  ret ptr %none
}}

define i1 @same(ptr %model, ptr %x, ptr %ys) nounwind {{
  %a = load double, ptr %x
  %b = load double, ptr %model
  %xp = getelementptr double, ptr %x, i64 1
  %c = load double, ptr %xp
  %s = fadd double %a, %b
  %y0 = load ptr, ptr %ys
  store double %s, ptr %y0
  %yp = getelementptr ptr, ptr %ys, i64 1
  %y1 = load ptr, ptr %yp
  store double %c, ptr %y1
  %ok = fcmp olt double %a, 100.0
  ret i1 %ok
}}

define i1 @sum(ptr %model, ptr %x, ptr %ys) nounwind {{
  %a = load double, ptr %x
  %b = load double, ptr %model
  %s = fadd double %a, %b
  %y0 = load ptr, ptr %ys
  store double %s, ptr %y0
  %ok = fcmp olt double %a, 100.0
  ret i1 %ok
}}
"""
