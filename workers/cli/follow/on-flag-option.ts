import { Option } from 'commander';
import { parseInput } from '../../../workflows/contracts/input.ts';
import { onFlag } from '../../../workflows/contracts/on-flag.ts';
import { orUsageError } from '../text/errors.ts';

/** Creates the `--on-flag` option of commands that start runs and sweeps. */
export const onFlagOption = (): Option =>
  new Option(
    '--on-flag <trick=action,...>',
    'what happens to the reward of a flagged rollout: keep, exclude or zero, for example program-shadow=zero,exit=exclude (default: keep)',
  ).argParser((text: string) =>
    orUsageError(
      () => parseInput('onFlag', onFlag, Object.fromEntries(text.split(',').map((one) => pairOf(one)))),
      '--on-flag',
    ),
  );

function pairOf(text: string): readonly [string, string] {
  const [trick = '', action = ''] = text.split('=');
  return [trick, action];
}
