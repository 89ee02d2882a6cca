import assert from 'node:assert/strict';
import { it } from 'node:test';
import { traceMetrics } from '../../workflows/algorithms/trace-metrics.ts';
import type { TraceCounts } from '../../workflows/contracts/trace.ts';

const clean: TraceCounts = {
  branches: { main: 1 },
  unclear: 0,
  dropped: 0,
  droppedTokens: 0,
  maskedTurns: 0,
  forks: 0,
  aborts: 0,
  echoes: {},
};

it('sums the deviations of a batch over its traces', () => {
  const calls = { ok: 5, repaired: 2, unclosed: 1 };
  const mainTurns = { all: 6, withoutCall: 1 };
  const forked = {
    ...clean,
    forks: 2,
    maskedTurns: 1,
    droppedTokens: 40,
    echoes: { text: 3, arguments: 1 },
    calls,
    mainTurns,
  };
  const metrics = traceMetrics(
    [clean, forked, { ...clean, forks: 1, mainTurns: { all: 2, withoutCall: 2 } }],
    [{}, { retries: 2 }, {}],
  );
  const nonZero = Object.fromEntries(Object.entries(metrics).filter(([, value]) => value !== 0));
  assert.deepEqual(nonZero, {
    'trace:forks': 3,
    'trace:maskedTurns': 1,
    'trace:droppedTokens': 40,
    'trace:echoes': 4,
    'trace:retries': 2,
    'trace:faultyCallShare': 3 / 8,
    'trace:repairedCallShare': 2 / 8,
    'trace:noCallTurnShare': 3 / 8,
  });
});
