import type { ListedObject, Objects } from '../../store/objects.ts';
import { keyOfStart, startFolder } from '../../store/start-records.ts';
import type { Category, RetentionContext } from '../category.ts';
import { byFolder, lastChangeOf, nameOf, objectEntry } from '../objects.ts';

/** The records of runs, sweeps and regrades, one folder each, named by the key. */
export const records: Category = {
  name: 'records',
  keeps: 'everything; `--older-than` removes the records of runs, sweeps and regrades that ended before',
  refersToBlobs: true,
  folder: 'runs',
  where: () => [],
  async *entries(context) {
    for await (const [name, found] of byFolder(context.objects.list('runs'), 'runs')) {
      const expired = await whyExpired(context, name, lastChangeOf(found));
      yield objectEntry(context, found, { name, expired });
    }
  },
};

/** The records of starts, by which the records of a run, sweep, regrade or group are found from its workflow id. */
export const starts: Category = {
  name: 'records of starts',
  keeps: 'those of runs, sweeps, regrades and groups that have records; `--older-than` removes the others',
  folder: startFolder,
  where: () => [],
  async *entries(context) {
    const { objects, cutoffMs } = context;
    if (cutoffMs === null) return;
    for await (const found of objects.list(startFolder)) {
      const key = keyOfStart(found.key);
      if ((await whyExpired(context, key, found.changedAtMs)) === null || (await hasObjects(objects, `runs/${key}`)))
        continue;
      yield objectEntry(context, [found], {
        name: found.key.slice(startFolder.length + 1),
        expired: 'its records are gone',
      });
    }
  },
};

async function hasObjects(objects: Objects, folder: string): Promise<boolean> {
  for await (const _ of objects.list(folder)) return true;
  return false;
}

/** The trainer's journals: what each optimizer update was sent, and where its checkpoints are. A long run has past steps beside. */
export const trainerJournals: Category = {
  name: "trainer's journals",
  keeps: 'everything; `--older-than` removes those of runs that ended before',
  refersToBlobs: true,
  folder: 'trainer',
  where: () => [],
  async *entries(context) {
    const journals: ListedObject[] = [];
    for await (const found of context.objects.list('trainer')) journals.push(found);
    const runs = Map.groupBy(journals, ({ key }) => /^trainer\/([0-9a-f-]{36})[./]/.exec(key)?.[1]);
    for (const [key, found] of runs) {
      if (key === undefined) continue;
      const expired = await whyExpired(context, key, lastChangeOf(found));
      const isPast = (one: ListedObject): boolean => one.key.startsWith(`trainer/${key}/`);
      const past = found.filter(isPast);
      // Past steps come before the journal, by which a killed pass is continued.
      if (past.length > 0) yield objectEntry(context, past, { name: key, expired });
      for (const one of found.filter((other) => !isPast(other))) {
        yield objectEntry(context, [one], { name: nameOf(one.key), expired });
      }
    }
  },
};

/** Returns why a run's objects go; null if they stay. Those of an open run stay, whatever their age. */
async function whyExpired(
  { cutoffMs, knowledge }: RetentionContext,
  key: string,
  changedAtMs: number,
): Promise<string | null> {
  if (cutoffMs === null || changedAtMs >= cutoffMs) return null;
  return (await knowledge.openKeys()).has(key) ? null : 'ended before the given age';
}

/** The packed task sets of `temper tasks add`, whose addresses users hold. */
export const packs: Category = {
  name: 'packed task sets',
  keeps:
    'everything; `--older-than` removes those that were added before and that no schedule and no open workflow names',
  refersToBlobs: true,
  folder: 'packs',
  where: () => [],
  async *entries(context) {
    const { objects, cutoffMs } = context;
    for await (const found of objects.list('packs')) {
      const expired = cutoffMs !== null && found.changedAtMs < cutoffMs ? 'added before the given age' : null;
      yield objectEntry(context, [found], { name: nameOf(found.key), expired });
    }
  },
};

/** Tasks with flaky tests and the evidence. */
export const quarantine: Category = {
  name: 'quarantine',
  keeps: 'everything, with its evidence; `temper tasks release` releases a task',
  refersToBlobs: true,
  folder: 'quarantine',
  where: () => [],
  async *entries(context) {
    for await (const found of context.objects.list('quarantine')) {
      yield objectEntry(context, [found], { name: nameOf(found.key), expired: null });
    }
  },
};
