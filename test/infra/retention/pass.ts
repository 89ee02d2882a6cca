import { pathsBelow } from '../../../infra/paths.ts';
import { caches } from '../../../infra/retention/categories/caches.ts';
import { logs } from '../../../infra/retention/categories/logs.ts';
import { dayMs } from '../../../infra/retention/category.ts';
import { collect } from '../../../infra/retention/collect.ts';
import { createKnowledge } from '../../../infra/retention/knowledge.ts';
import { createDirectory } from '../../../infra/store/directory.ts';

// A process that makes one pass over some categories of a home, with its cache below it: to be killed by a test.

const [home = ''] = process.argv.slice(2);
const context = {
  paths: pathsBelow(home),
  objects: createDirectory(home),
  cacheDir: `${home}/cache`,
  checkpoints: `${home}/checkpoints`,
  nowMs: Date.now(),
  cutoffMs: null,
  graceMs: dayMs,
  knowledge: createKnowledge(() => Promise.reject(new Error('the server is away'))),
  signal: new AbortController().signal,
  note: () => undefined,
};
const reports = await collect(home, [caches, logs], context, { dryRun: false, limitMs: 600_000 });
if ('holder' in reports || reports.some(({ skipped }) => skipped !== null)) throw new Error(JSON.stringify(reports));
