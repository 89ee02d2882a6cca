import { rmsEpsilon } from './kernels.ts';
import { emitFunction, f32, f32x4, i32, type Local, v128 } from './wasm-emitter.ts';
import { createExp4, keep, lanesBelow, maxLanes, ones, sumLanes, zeros } from './wasm-math.ts';

// The row-wise and element-wise kernels in WASM SIMD. Pointers and strides are in bytes, widths and counts in elements.

const fourFloats = i32.const(16);
const bytes = (count: Local) => i32.shl(count.get, i32.const(2));

export const transpose = emitFunction(
  'transpose',
  { target: 'i32', targetRow: 'i32', source: 'i32', sourceRow: 'i32', rows: 'i32', columns: 'i32' },
  (f, p) => {
    const [row, column, from, to] = [f.local('i32'), f.local('i32'), f.local('i32'), f.local('i32')];
    f.for(row, p.rows.get, i32.const(1), () => {
      from.set(p.source.get);
      to.set(p.target.get);
      f.for(column, p.columns.get, i32.const(1), () => {
        f.storeF32(to.get, f32.load(from.get));
        from.set(i32.add(from.get, i32.const(4)));
        to.set(i32.add(to.get, p.targetRow.get));
      });
      p.source.set(i32.add(p.source.get, p.sourceRow.get));
      p.target.set(i32.add(p.target.get, i32.const(4)));
    });
  },
);

export const rmsNorm = emitFunction(
  'rmsNorm',
  { y: 'i32', inverseRms: 'i32', x: 'i32', gain: 'i32', rows: 'i32', width: 'i32' },
  (f, p) => {
    const [row, i, sum, value] = [f.local('i32'), f.local('i32'), f.local('v128'), f.local('v128')];
    const [inverse, rowBytes] = [f.local('f32'), f.local('i32', bytes(p.width))];
    f.for(row, p.rows.get, i32.const(1), () => {
      sum.set(zeros);
      f.for(i, rowBytes.get, fourFloats, () => {
        value.set(v128.load(i32.add(p.x.get, i.get)));
        sum.set(f32x4.add(sum.get, f32x4.mul(value.get, value.get)));
      });
      const mean = f32.div(sumLanes(sum), f32.fromI32(p.width.get));
      inverse.set(f32.div(f32.const(1), f32.sqrt(f32.add(mean, f32.const(rmsEpsilon)))));
      f.storeF32(p.inverseRms.get, inverse.get);
      f.for(i, rowBytes.get, fourFloats, () => {
        const scaled = f32x4.mul(v128.load(i32.add(p.x.get, i.get)), f32x4.splat(inverse.get));
        f.storeV128(i32.add(p.y.get, i.get), f32x4.mul(scaled, v128.load(i32.add(p.gain.get, i.get))));
      });
      p.x.set(i32.add(p.x.get, rowBytes.get));
      p.y.set(i32.add(p.y.get, rowBytes.get));
      p.inverseRms.set(i32.add(p.inverseRms.get, i32.const(4)));
    });
  },
);

export const rmsNormBackward = emitFunction(
  'rmsNormBackward',
  { dx: 'i32', dGain: 'i32', dy: 'i32', x: 'i32', inverseRms: 'i32', gain: 'i32', rows: 'i32', width: 'i32' },
  (f, p) => {
    const [row, i, rowBytes] = [f.local('i32'), f.local('i32'), f.local('i32', bytes(p.width))];
    const [dot, slope, inverse, pull] = [f.local('v128'), f.local('v128'), f.local('f32'), f.local('f32')];
    const at = (pointer: Local) => i32.add(pointer.get, i.get);
    f.for(row, p.rows.get, i32.const(1), () => {
      inverse.set(f32.load(p.inverseRms.get));
      dot.set(zeros);
      f.for(i, rowBytes.get, fourFloats, () => {
        const product = f32x4.mul(f32x4.mul(v128.load(at(p.dy)), v128.load(at(p.gain))), v128.load(at(p.x)));
        dot.set(f32x4.add(dot.get, product));
      });
      const cube = f32.mul(f32.mul(inverse.get, inverse.get), inverse.get);
      pull.set(f32.div(f32.mul(sumLanes(dot), cube), f32.fromI32(p.width.get)));
      f.for(i, rowBytes.get, fourFloats, () => {
        slope.set(f32x4.mul(v128.load(at(p.dy)), f32x4.splat(inverse.get)));
        const direct = f32x4.mul(slope.get, v128.load(at(p.gain)));
        const change = f32x4.sub(direct, f32x4.mul(f32x4.splat(pull.get), v128.load(at(p.x))));
        f.storeV128(at(p.dx), f32x4.add(v128.load(at(p.dx)), change));
        f.storeV128(at(p.dGain), f32x4.add(v128.load(at(p.dGain)), f32x4.mul(slope.get, v128.load(at(p.x)))));
      });
      for (const pointer of [p.dx, p.dy, p.x]) pointer.set(i32.add(pointer.get, rowBytes.get));
      p.inverseRms.set(i32.add(p.inverseRms.get, i32.const(4)));
    });
  },
);

export const silu = emitFunction('silu', { y: 'i32', x: 'i32', count: 'i32' }, (f, p) => {
  const [i, end, value] = [f.local('i32'), f.local('i32', bytes(p.count)), f.local('v128')];
  const exp4 = createExp4(f);
  f.for(i, end.get, fourFloats, () => {
    value.set(v128.load(i32.add(p.x.get, i.get)));
    const exp = exp4(f32x4.sub(zeros, value.get));
    f.storeV128(i32.add(p.y.get, i.get), f32x4.div(value.get, f32x4.add(ones, exp)));
  });
});

export const siluBackward = emitFunction('siluBackward', { dx: 'i32', x: 'i32', count: 'i32' }, (f, p) => {
  const [i, end, value, sigmoid] = [f.local('i32'), f.local('i32', bytes(p.count)), f.local('v128'), f.local('v128')];
  const exp4 = createExp4(f);
  f.for(i, end.get, fourFloats, () => {
    value.set(v128.load(i32.add(p.x.get, i.get)));
    sigmoid.set(f32x4.div(ones, f32x4.add(ones, exp4(f32x4.sub(zeros, value.get)))));
    const bend = f32x4.add(ones, f32x4.mul(value.get, f32x4.sub(ones, sigmoid.get)));
    const address = i32.add(p.dx.get, i.get);
    f.storeV128(address, f32x4.mul(v128.load(address), f32x4.mul(sigmoid.get, bend)));
  });
});

export const softmax = emitFunction(
  'softmax',
  {
    x: 'i32',
    row: 'i32',
    rows: 'i32',
    width: 'i32',
    firstValid: 'i32',
    validStep: 'i32',
    scale: 'f32',
    stats: 'i32',
  },
  (f, p) => {
    const [r, j, valid] = [f.local('i32'), f.local('i32'), f.local('i32')];
    const [top, sum, value] = [f.local('v128'), f.local('v128'), f.local('v128')];
    const [maximum, total, exp4] = [f.local('f32'), f.local('f32'), createExp4(f)];
    const address = i32.add(p.x.get, i32.shl(j.get, i32.const(2)));
    const four = i32.const(4);
    f.for(r, p.rows.get, i32.const(1), () => {
      valid.set(p.firstValid.get);
      f.if(i32.lt(p.width.get, p.firstValid.get), () => valid.set(p.width.get));
      top.set(f32x4.const(-3e38));
      f.for(j, valid.get, four, () => {
        const scaled = f32x4.mul(v128.load(address), f32x4.splat(p.scale.get));
        value.set(v128.select(scaled, f32x4.const(-3e38), lanesBelow(j.get, valid.get)));
        f.storeV128(address, value.get);
        top.set(f32x4.max(top.get, value.get));
      });
      maximum.set(maxLanes(top));
      sum.set(zeros);
      f.for(j, valid.get, four, () => {
        const exp = exp4(f32x4.sub(v128.load(address), f32x4.splat(maximum.get)));
        value.set(keep(exp, lanesBelow(j.get, valid.get)));
        f.storeV128(address, value.get);
        sum.set(f32x4.add(sum.get, value.get));
      });
      f.while(i32.lt(j.get, p.width.get), () => {
        f.storeV128(address, zeros);
        j.set(i32.add(j.get, four));
      });
      total.set(sumLanes(sum));
      value.set(f32x4.splat(f32.div(f32.const(1), total.get)));
      f.for(j, valid.get, four, () => {
        f.storeV128(address, f32x4.mul(v128.load(address), value.get));
      });
      f.storeF32(p.stats.get, maximum.get);
      f.storeF32(i32.add(p.stats.get, four), total.get);
      p.stats.set(i32.add(p.stats.get, i32.const(8)));
      p.x.set(i32.add(p.x.get, p.row.get));
      p.firstValid.set(i32.add(p.firstValid.get, p.validStep.get));
    });
  },
);

export const softmaxBackward = emitFunction(
  'softmaxBackward',
  { y: 'i32', dy: 'i32', row: 'i32', rows: 'i32', width: 'i32', scale: 'f32' },
  (f, p) => {
    const [r, i, end] = [f.local('i32'), f.local('i32'), f.local('i32', bytes(p.width))];
    const [dot, factor] = [f.local('v128'), f.local('v128', f32x4.splat(p.scale.get))];
    const [y, dy] = [i32.add(p.y.get, i.get), i32.add(p.dy.get, i.get)];
    f.for(r, p.rows.get, i32.const(1), () => {
      dot.set(zeros);
      f.for(i, end.get, fourFloats, () => {
        dot.set(f32x4.add(dot.get, f32x4.mul(v128.load(y), v128.load(dy))));
      });
      dot.set(f32x4.splat(sumLanes(dot)));
      f.for(i, end.get, fourFloats, () => {
        const centred = f32x4.sub(v128.load(dy), dot.get);
        f.storeV128(dy, f32x4.mul(f32x4.mul(v128.load(y), centred), factor.get));
      });
      p.y.set(i32.add(p.y.get, p.row.get));
      p.dy.set(i32.add(p.dy.get, p.row.get));
    });
  },
);
