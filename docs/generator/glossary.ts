import { failureKinds } from '../../workflows/contracts/failures.ts';
import { trickDescriptions } from '../../workflows/contracts/flags.ts';
import { fateDescriptions, outcomeDescriptions, stopReasonDescriptions } from '../../workflows/contracts/outcome.ts';
import type { RegradeState } from '../../workflows/contracts/regrade.ts';
import type { RewardPolicy } from '../../workflows/contracts/resolution.ts';
import { stageDescriptions } from '../../workflows/contracts/rollout.ts';
import type { LeftOut } from '../../workflows/contracts/sweep.ts';
import { branchKindDescriptions } from '../../workflows/contracts/trace.ts';
import type { Exposure, Verdict } from '../../workflows/contracts/verdict.ts';
import { entry, plain } from './markdown.ts';

const verdictKinds: Readonly<Record<Verdict['kind'], string>> = {
  graded: 'The tests wrote a reward from 0 to 1, or their log could be judged.',
  timeout: 'The tests ran out of time.',
  'no-reward': 'The tests ended without writing a reward.',
  refused: 'The tests are judged by their log, and the log cannot be trusted.',
  'patch-failed': 'The diff does not apply to a fresh workspace.',
};

const exposures: Readonly<Record<Exposure, string>> = {
  forgeable:
    'Processes of the agent run on beside its tests, and it is root there or can write where the tests find their programs: they can write the verdict.',
  'same-sandbox':
    "The tests run in the agent's own sandbox, where whatever the agent left there and in its services may change them.",
  snapshot: 'The tests run in a fresh sandbox that holds all that the agent changed in its own, such as programs.',
  'in-process': 'The code under test is loaded into the process that reports its results.',
  'same-account': "The task's own script decides how the code runs, at best as a program under the script's account.",
  'other-account': 'The code runs under another account, which reaches neither the tests nor their results.',
};

const rewardPolicies: Readonly<Record<RewardPolicy, string>> = {
  binary: '1 if every required test is as it should be, otherwise 0.',
  fraction: 'The share of the required tests that are as they should be.',
  'fail-to-pass': 'The share of `failToPass` that passes, and 0 if a test of `passToPass` broke.',
};

const regradeStates: Readonly<Record<RegradeState, string>> = {
  same: 'The new reward equals the old one.',
  changed: 'The new reward differs from the old one, or there was none before.',
  unstable: 'Evaluations of the same diff disagree, so there is no new reward.',
  failed: 'The rollout could not be graded.',
  'left-out': 'The rollout was not graded again.',
};

const leftOut: Readonly<Record<LeftOut, string>> = {
  infra: 'The attempt ended as `infra`, also after its retries.',
  stale: 'The rollout was stopped as stale.',
  'invalid-task': 'The task is invalid.',
  cancelled: 'The rollout was cancelled.',
  flagged:
    'The attempt was scored, and the sweep leaves out what is flagged for one of its tricks (`onFlag`: `exclude`).',
  'other-version': 'The attempt was scored, but another version or model than the pinned one sampled it.',
};

/** The closed unions of the code, each with one sentence per member. */
export const unions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  outcomes: outcomeDescriptions,
  stops: stopReasonDescriptions,
  fates: fateDescriptions,
  stages: stageDescriptions,
  branches: branchKindDescriptions,
  verdicts: verdictKinds,
  exposures,
  rewards: rewardPolicies,
  regrades: regradeStates,
  excluded: leftOut,
  flags: trickDescriptions,
  failures: Object.fromEntries(Object.entries(failureKinds).map(([type, { description }]) => [type, description])),
};

/** Replaces each region between `<!-- UNION -->` and `<!-- end -->` by the members of that union. */
export function fillGlossary(text: string): string {
  return text.replaceAll(/<!-- (\w+) -->\n[\s\S]*?<!-- end -->/g, (_, name: string) => {
    const union = unions[name];
    if (union === undefined)
      throw new Error(`docs/glossary.md names the union "${name}"; expected one of ${Object.keys(unions).join(', ')}`);
    const entries = Object.entries(union).map(([member, description]) => entry(member, [], plain(description)));
    return `<!-- ${name} -->\n${entries.join('\n')}\n<!-- end -->`;
  });
}
