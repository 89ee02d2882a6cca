import { readFile } from 'node:fs/promises';
import type { Category, RetentionContext } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { textOf } from '../object-text.ts';
import { digestsIn, digestsInHistory } from './history.ts';

/** The references that one source holds. */
export interface Reference {
  readonly digest: string;
  /** Whether the blob may itself name blobs: a list of tasks, a report. */
  readonly mayRefer: boolean;
}

/** A source of references to blobs. */
export interface Root {
  readonly name: string;
  /** The part of temper that writes the references. */
  readonly owner: string;
  references(context: RetentionContext): AsyncIterable<Reference>;
}

/** Records that hold rows of rollouts, and journals that hold data of updates: the blobs that they name refer to nothing. */
const rows = /^runs\/[^/]+\/(group|step|rollouts|rows)-\d+\.json$|^runs\/[^/]+\/batch-\d+\.json$|^trainer\//;

/** Makes a root of the files and the shared objects that a category keeps. */
export function filesOf(category: Category, owner: string): Root {
  return {
    name: category.name,
    owner,
    async *references(context) {
      for await (const { path, keys, expired } of category.entries(context)) {
        if (expired !== null) continue;
        for (const key of keys ?? []) yield* referencesIn(await textOf(context, key), !rows.test(key));
        if (keys !== undefined) continue;
        for await (const file of filesBelow(path)) {
          yield* referencesIn(await readTextIfThere(file), !file.endsWith('.jsonl'));
        }
      }
    },
  };
}

function* referencesIn(text: string, mayRefer: boolean): Iterable<Reference> {
  for (const digest of digestsIn(text)) yield { digest, mayRefer };
}

async function* filesBelow(path: string): AsyncIterable<string> {
  const below = await listDirectory(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR') return null;
    throw error;
  });
  if (below === null) yield path;
  else for (const found of below) yield* found.isDirectory ? filesBelow(found.path) : [found.path];
}

function readTextIfThere(path: string): Promise<string> {
  return readFile(path, 'latin1').catch((error: NodeJS.ErrnoException) => {
    // A gateway may have sealed or removed it meanwhile: what it names then is newer than the grace period.
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/** The inputs of schedules. */
export const schedules: Root = {
  name: 'schedules',
  owner: '`temper schedule`',
  async *references({ knowledge }) {
    for (const input of await knowledge.scheduleInputs()) {
      for (const digest of digestsIn(input)) yield { digest, mayRefer: true };
    }
  },
};

/**
 * The histories of open workflows. Those of rollouts and groups that began within half the grace period are not read: what
 * they refer to they have put or described since, so that it is too new to be removed.
 */
export const openWorkflows: Root = {
  name: 'open workflows',
  owner: 'workflows that run',
  async *references({ knowledge, nowMs, graceMs, signal }) {
    const client = await knowledge.client();
    const query = 'ExecutionStatus="Running"';
    for await (const { workflowId, runId, type, startTime } of client.workflow.list({ query })) {
      signal.throwIfAborted();
      const short = type === 'rollout' || type === 'group';
      if (short && nowMs - startTime.getTime() < graceMs / 2) continue;
      for (const digest of await digestsInHistory(client, { workflowId, runId })) yield { digest, mayRefer: !short };
    }
  },
};
