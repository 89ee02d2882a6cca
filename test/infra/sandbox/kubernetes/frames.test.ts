import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  createFrameDecoder,
  encodeFrame,
  frameKinds,
  largestPayload,
} from '../../../../infra/sandbox/kubernetes/keeper/frames.ts';

it('reads frames that are cut anywhere, and refuses a length that no keeper sends', () => {
  const decode = createFrameDecoder(largestPayload);
  const whole = encodeFrame(frameKinds.stdout, 7, Buffer.alloc(largestPayload, 'x'));
  const frames = [whole.subarray(0, 3), whole.subarray(3, 100), whole.subarray(100)].flatMap((part) => decode(part));
  assert.deepEqual(
    frames.map(({ kind, task, payload }) => [kind, task, payload.length]),
    [[frameKinds.stdout, 7, largestPayload]],
  );
  const hostile = Buffer.alloc(9);
  hostile.writeUInt32BE(2 ** 32 - 1);
  assert.throws(() => decode(hostile), /payload of at most 32768 bytes, got 4294967295/);
});
