import type { FailureType } from '../../../workflows/contracts/failures.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import type { TestRun } from '../tests/test-run.ts';
import { failedDownloads } from './failed-downloads.ts';
import { missingPrograms } from './missing-programs.ts';

/** A fault that a run of the tests shows. The task or the host may be to blame, or the code under test has caused or printed it. */
export interface Evidence {
  readonly kind: EvidenceKind;
  /** The name of a program or a host, for example, which is compared with the runs without work. */
  readonly what: string;
  /** The end of a sentence that begins with the tests, for readers. */
  readonly text: string;
}

export interface EvidenceRule {
  /** Returns the evidence in a run. */
  find(run: TestRun): readonly Omit<Evidence, 'kind'>[];
  /** Whether the reference solution has to show it as well as the untouched workspace. */
  readonly needsReference: boolean;
  /** The failure of the evaluation; `programs` is the origin of the programs in its sandbox. */
  type(programs: 'image' | 'host'): FailureType;
  /** The advice for the author of the task. */
  readonly remedy: string;
  /** Whether a verdict is flagged for which neither is to blame. Other rules flag what they find themselves. */
  readonly flags: boolean;
}

const fullDisk = /No space left on device|\bENOSPC\b|Disk quota exceeded/;
const brokenTests = (): FailureType => 'BrokenTests';

/** The kinds of evidence, the most telling first. */
const rules = {
  'invalid-reward': {
    find: ({ invalidReward: text }) => (text === undefined ? [] : [{ what: 'reward', text }]),
    needsReference: false,
    type: () => 'InvalidReward',
    remedy: "they also write it over the untouched workspace, so correct the task's tests/test.sh",
    flags: false,
  },
  'not-copied': {
    find: ({ notCopied: text }) => (text === undefined ? [] : [{ what: 'workdir', text }]),
    needsReference: false,
    type: () => 'SetupFailed',
    remedy: 'the same holds for the untouched workspace, so make its files readable for all in the image',
    flags: false,
  },
  program: {
    find: ({ log }) =>
      missingPrograms(log.toString('utf8')).map((what) => ({ what, text: `they do not find ${what}` })),
    needsReference: true,
    type: (programs) => (programs === 'host' ? 'MissingProgram' : 'BrokenTests'),
    remedy:
      'install what is missing in the image; a local sandbox has the programs of this host instead of those of the image',
    flags: true,
  },
  download: {
    find: ({ log }) =>
      failedDownloads(log.toString('utf8')).map((what) => ({ what, text: `they could not download ${what}` })),
    needsReference: true,
    type: brokenTests,
    remedy: 'install it in the image, or grant the tests their network (TEMPER_NETWORK)',
    flags: true,
  },
  'full-disk': {
    find: ({ log }) => (fullDisk.test(log.toString('utf8')) ? [{ what: 'disk', text: 'their disk is full' }] : []),
    needsReference: true,
    type: brokenTests,
    remedy: 'raise storage_mb of the task',
    flags: true,
  },
  'no-reward': {
    find: ({ kind, invalidReward }) =>
      kind === 'no-reward' && invalidReward === undefined ? [{ what: 'reward', text: 'they write no reward' }] : [],
    needsReference: true,
    type: brokenTests,
    remedy: "correct the task's tests/test.sh",
    flags: true,
  },
} as const satisfies Record<string, EvidenceRule>;

export type EvidenceKind = keyof typeof rules;

export const ruleOf = (kind: EvidenceKind): EvidenceRule => rules[kind];

/** Returns all evidence of a run, by the order of its kinds. */
export const evidenceIn = (run: TestRun): readonly Evidence[] =>
  (Object.keys(rules) as EvidenceKind[]).flatMap((kind) => rules[kind].find(run).map((found) => ({ kind, ...found })));

/** Returns the evidence that other runs show, too. */
export const shared = (evidence: readonly Evidence[], others: readonly Evidence[]): readonly Evidence[] =>
  evidence.filter(({ kind, what }) => others.some((other) => other.kind === kind && other.what === what));

/** Whether a task's reference solution tells about its tests. That of a later step needs the work of the earlier ones. */
export const referenceTells = ({ step = 1, network }: Pick<Task, 'step' | 'network'>): boolean =>
  // Without the network of the agent, the solution may lack what it would load.
  step === 1 && (network === undefined || network.mode === 'none');
