import { flagsOfRollout } from '../../../../workflows/algorithms/flags.ts';
import type { RolloutResult } from '../../../../workflows/contracts/rollout.ts';
import type { Exposure } from '../../../../workflows/contracts/verdict.ts';

const exposures: Readonly<Record<Exposure, string>> = {
  'in-process': 'in the process of its tests',
  'same-account': "under the account of the task's test script",
  'other-account': 'under another account than its tests',
};

/** What looks like a trick, each in a line, and how far the code under test could get at its judge. */
export function doubtLines(result: Pick<RolloutResult, 'diff' | 'verdict'>): readonly string[] {
  const exposure = result.verdict?.exposure;
  return [
    ...flagsOfRollout(result).map(({ trick, evidence }) => `flag ${trick}: ${evidence}`),
    ...(exposure === undefined ? [] : [`the code under test ran ${exposures[exposure]} (${exposure})`]),
  ];
}
