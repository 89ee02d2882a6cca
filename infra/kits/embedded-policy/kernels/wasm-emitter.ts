// A small emitter of WebAssembly: just enough to write SIMD kernels as TypeScript that reads like the arithmetic it does.
// Expressions are arrays of bytes that leave one value on the stack; a `FunctionBuilder` chains statements.
// Encodings: WebAssembly core specification 2.0, chapter 5, and its SIMD table.

export type Code = readonly number[];
export type ValueType = 'i32' | 'f32' | 'v128';

const typeBytes: Readonly<Record<ValueType, number>> = { i32: 0x7f, f32: 0x7d, v128: 0x7b };

function unsignedLeb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest & 0x7f;
    rest >>>= 7;
    bytes.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return bytes;
}

function signedLeb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    const done = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
    bytes.push(done ? low : low | 0x80);
    if (done) return bytes;
  }
}

function floatBytes(value: number): number[] {
  return [...new Uint8Array(new Float32Array([value]).buffer)];
}

const binary =
  (opcode: readonly number[]) =>
  (a: Code, b: Code): Code => [...a, ...b, ...opcode];
const unary =
  (opcode: readonly number[]) =>
  (a: Code): Code => [...a, ...opcode];
const simd = (opcode: number): number[] => [0xfd, ...unsignedLeb(opcode)];
/** The alignment of a memory access. The natural alignment hint is omitted, because 0 is always valid. */
const memory = (offset: number): number[] => [0, ...unsignedLeb(offset)];

export const i32 = {
  const: (value: number): Code => [0x41, ...signedLeb(value)],
  add: binary([0x6a]),
  sub: binary([0x6b]),
  mul: binary([0x6c]),
  and: binary([0x71]),
  shl: binary([0x74]),
  lt: binary([0x48]),
  le: binary([0x4c]),
  ge: binary([0x4e]),
} as const;

export const f32 = {
  const: (value: number): Code => [0x43, ...floatBytes(value)],
  load: (address: Code, offset = 0): Code => [...address, 0x2a, ...memory(offset)],
  sqrt: unary([0x91]),
  add: binary([0x92]),
  sub: binary([0x93]),
  mul: binary([0x94]),
  div: binary([0x95]),
  max: binary([0x97]),
  fromI32: unary([0xb2]),
} as const;

export const v128 = {
  load: (address: Code, offset = 0): Code => [...address, ...simd(0x00), ...memory(offset)],
  loadSplat: (address: Code, offset = 0): Code => [...address, ...simd(0x09), ...memory(offset)],
  const: (lanes: Code): Code => [...simd(0x0c), ...lanes],
  and: binary(simd(0x4e)),
  /** Selects lanes of `a` where mask bits are set, else of `b`. */
  select: (a: Code, b: Code, mask: Code): Code => [...a, ...b, ...mask, ...simd(0x52)],
} as const;

export const i32x4 = {
  lanes: (...values: readonly number[]): Code => v128.const([...new Uint8Array(new Int32Array(values).buffer)]),
  splat: unary(simd(0x11)),
  lt: binary(simd(0x39)),
  shl: binary(simd(0xab)),
  add: binary(simd(0xae)),
  truncate: unary(simd(0xf8)),
} as const;

export const f32x4 = {
  const: (value: number): Code => v128.const([value, value, value, value].flatMap(floatBytes)),
  splat: unary(simd(0x13)),
  lane: (vector: Code, index: number): Code => [...vector, ...simd(0x1f), index],
  ge: binary(simd(0x46)),
  nearest: unary(simd(0x6a)),
  add: binary(simd(0xe4)),
  sub: binary(simd(0xe5)),
  mul: binary(simd(0xe6)),
  div: binary(simd(0xe7)),
  /** pmin and pmax compile to one machine instruction each; a NaN in `a` stays. */
  min: binary(simd(0xea)),
  max: binary(simd(0xeb)),
} as const;

export interface Local {
  /** Reads the local. */
  readonly get: Code;
  set(value: Code): void;
}

export interface FunctionBuilder {
  local(type: ValueType, initial?: Code): Local;
  storeF32(address: Code, value: Code): void;
  storeV128(address: Code, value: Code, offset?: number): void;
  /** Runs the body while the condition holds. */
  while(condition: Code, body: () => void): void;
  /** Runs the body with counter = 0, step, 2 step, ... while counter < end; the counter keeps its last value. */
  for(counter: Local, end: Code, step: Code, body: () => void): void;
  if(condition: Code, body: () => void): void;
}

export interface EmittedFunction {
  readonly name: string;
  readonly parameters: readonly ValueType[];
  readonly locals: readonly ValueType[];
  readonly body: Code;
}

/** Emits one exported function without result; `build` receives its parameters as locals, by name. */
export function emitFunction<const Names extends Readonly<Record<string, ValueType>>>(
  name: string,
  parameters: Names,
  build: (f: FunctionBuilder, p: { readonly [Name in keyof Names]: Local }) => void,
): EmittedFunction {
  const types = Object.values(parameters);
  const locals: ValueType[] = [];
  const body: number[] = [];
  const push = (...bytes: number[]): void => void body.push(...bytes);
  const localAt = (index: number): Local => ({
    get: [0x20, ...unsignedLeb(index)],
    set: (value) => push(...value, 0x21, ...unsignedLeb(index)),
  });
  const builder: FunctionBuilder = {
    local(type, initial) {
      const local = localAt(types.length + locals.push(type) - 1);
      if (initial !== undefined) local.set(initial);
      return local;
    },
    storeF32: (address, value) => push(...address, ...value, 0x38, ...memory(0)),
    storeV128: (address, value, offset = 0) => push(...address, ...value, ...simd(0x0b), ...memory(offset)),
    while(condition, inner) {
      push(0x02, 0x40, 0x03, 0x40, ...condition, 0x45, 0x0d, 1); // block, loop, leave the block unless the condition holds
      inner();
      push(0x0c, 0, 0x0b, 0x0b);
    },
    for(counter, end, step, inner) {
      counter.set(i32.const(0));
      this.while(i32.lt(counter.get, end), () => {
        inner();
        counter.set(i32.add(counter.get, step));
      });
    },
    if(condition, inner) {
      push(...condition, 0x04, 0x40);
      inner();
      push(0x0b);
    },
  };
  const named = Object.fromEntries(Object.keys(parameters).map((key, index) => [key, localAt(index)]));
  build(builder, named as { readonly [Name in keyof Names]: Local });
  return { name, parameters: types, locals, body };
}

/** Emits a module that imports its memory as `env.memory` and exports the functions. */
export function emitModule(functions: readonly EmittedFunction[]): Uint8Array<ArrayBuffer> {
  const vector = (items: readonly Code[]): number[] => [...unsignedLeb(items.length), ...items.flat()];
  const sized = (bytes: Code): number[] => [...unsignedLeb(bytes.length), ...bytes];
  const section = (id: number, content: Code): number[] => [id, ...sized(content)];
  const text = (value: string): number[] => sized([...new TextEncoder().encode(value)]);
  const byteOf = (type: ValueType): number => typeBytes[type];
  const magicAndVersion = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
  return new Uint8Array([
    ...magicAndVersion,
    ...section(1, vector(functions.map((f) => [0x60, ...vector(f.parameters.map((type) => [byteOf(type)])), 0]))),
    ...section(2, vector([[...text('env'), ...text('memory'), 0x02, 0x00, 1]])),
    ...section(3, vector(functions.map((_, index) => unsignedLeb(index)))),
    ...section(7, vector(functions.map((f, index) => [...text(f.name), 0x00, ...unsignedLeb(index)]))),
    ...section(
      10,
      vector(functions.map((f) => sized([...vector(f.locals.map((type) => [1, byteOf(type)])), ...f.body, 0x0b]))),
    ),
  ]);
}
