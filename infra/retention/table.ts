import { blobsOf } from './categories/blobs.ts';
import { cachedVerdicts } from './categories/cached-verdicts.ts';
import { caches } from './categories/caches.ts';
import { checkpoints } from './categories/checkpoints.ts';
import { dataSets } from './categories/data-sets.ts';
import { database } from './categories/database.ts';
import { demoHomes } from './categories/demo-homes.ts';
import { journals } from './categories/journals.ts';
import { logs } from './categories/logs.ts';
import { outcomes, recordedOutcomes } from './categories/outcomes.ts';
import { packs, quarantine, records, starts, trainerJournals } from './categories/records.ts';
import { rollouts } from './categories/rollouts.ts';
import type { Category } from './category.ts';
import { filesOf, openWorkflows, type Root, schedules } from './references/roots.ts';

/** The files of the home that refer to blobs. */
const roots: readonly Root[] = [
  filesOf(
    records,
    'runs, sweeps and regrades (`recordGroup`, `recordStep`, `summariseSweep`, `planRegrade` and others)',
  ),
  filesOf(trainerJournals, 'the trainer worker: the data of each update, for a replay'),
  filesOf(packs, '`temper tasks add`'),
  filesOf(quarantine, '`temper tasks validate` and regrades: the evidence against a task'),
  filesOf(journals, 'the gateway: the traces of sealed sessions'),
  filesOf(cachedVerdicts, 'evaluations with `reuseVerdicts`'),
  recordedOutcomes,
];

/** All sources of references to blobs, for the documentation. */
export const allRoots: readonly Pick<Root, 'name' | 'owner'>[] = [openWorkflows, schedules, ...roots];

/** Everything that would grow for ever, in the order of a pass. Blobs come last: what refers to them goes first. */
export const categories: readonly Category[] = [
  caches,
  dataSets,
  demoHomes,
  logs,
  journals,
  checkpoints,
  cachedVerdicts,
  packs,
  quarantine,
  outcomes,
  records,
  starts,
  rollouts,
  trainerJournals,
  database,
  blobsOf(roots),
];
